// SPDX-License-Identifier: MIT
#include "client/runtime/tensor_map.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hackc::client {
namespace {

absl::StatusOr<CUtensorMapDataType> DataType(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case v1::DTYPE_BFLOAT16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case v1::DTYPE_FLOAT16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case v1::DTYPE_INT32: return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case v1::DTYPE_INT64: return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case v1::DTYPE_FLOAT64: return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("tensor map of ", v1::DType_Name(dtype), " does not exist"));
  }
}

absl::StatusOr<CUtensorMapSwizzle> Swizzle(uint32_t bytes) {
  switch (bytes) {
    case 0: return CU_TENSOR_MAP_SWIZZLE_NONE;
    case 32: return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64: return CU_TENSOR_MAP_SWIZZLE_64B;
    case 128: return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("tensor map: swizzle of ", bytes, " bytes, expected 0, 32, 64 or 128"));
  }
}

}  // namespace

absl::Status EncodeTensorMap(const CudaDriver& driver, const v1::TensorMapRecipe& recipe,
                             CUdeviceptr base, const SymbolValues& symbols, CUtensorMap* map) {
  constexpr int kMaxRank = 5;
  int rank = recipe.dims_size();
  if (rank < 1 || rank > kMaxRank || recipe.strides_size() != rank - 1 ||
      recipe.box_size() != rank) {
    return absl::InvalidArgumentError("tensor map: incomplete recipe");
  }
  std::array<cuuint64_t, kMaxRank> dims{};
  std::array<cuuint64_t, kMaxRank> strides{};
  std::array<cuuint32_t, kMaxRank> box{};
  std::array<cuuint32_t, kMaxRank> element_strides{1, 1, 1, 1, 1};
  for (int i = 0; i < rank; ++i) {
    HACKC_ASSIGN_OR_RETURN(int64_t extent, Evaluate(recipe.dims(i), symbols));
    dims[i] = extent;
    box[i] = recipe.box(i);
    if (i + 1 == rank) continue;
    HACKC_ASSIGN_OR_RETURN(int64_t stride, Evaluate(recipe.strides(i), symbols));
    strides[i] = stride;
  }
  HACKC_ASSIGN_OR_RETURN(CUtensorMapDataType type, DataType(recipe.dtype()));
  HACKC_ASSIGN_OR_RETURN(CUtensorMapSwizzle swizzle, Swizzle(recipe.swizzle_bytes()));
  return driver.Check(
      driver.TensorMapEncodeTiled(
          map, type, rank, reinterpret_cast<void*>(base), dims.data(), strides.data(), box.data(),
          element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
          CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled");
}

}  // namespace hackc::client
