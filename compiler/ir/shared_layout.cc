// SPDX-License-Identifier: MIT
#include "compiler/ir/shared_layout.h"

#include <algorithm>

#include "compiler/ir/rewrite.h"
#include "compiler/support/internal_error.h"
#include "compiler/support/saturate.h"

namespace hackc::ir {
const SharedSlot* SharedLayout::Find(std::string_view name) const {
  return FindBy(
      slots, [](const SharedSlot& slot) { return slot.alloc->name; }, name);
}

SharedLayout LayoutShared(const Block& body) {
  SharedLayout layout;
  WalkStmts(body, [&](const Alloc& alloc) {
    if (alloc.space == MemorySpace::kLocal) return;
    HACKC_CHECK(alloc.alignment > 0 && alloc.alignment % SizeOf(alloc.dtype) == 0)
        << "@" << alloc.name << " has alignment " << alloc.alignment;
    const int64_t offset =
        SaturatedSum(layout.total_bytes, alloc.alignment - 1) / alloc.alignment * alloc.alignment;
    const int64_t bytes = SaturatedProduct(ElementCount(alloc), SizeOf(alloc.dtype));
    layout.slots.push_back({&alloc, offset, bytes});
    layout.total_bytes = SaturatedSum(offset, bytes);
    layout.alignment = std::max<int64_t>(layout.alignment, alloc.alignment);
  });
  return layout;
}

std::vector<int64_t> Strides(const Alloc& alloc) {
  std::vector<int64_t> strides(alloc.extents.size(), 1);
  for (size_t i = alloc.extents.size(); i-- > 1;) {
    const int64_t padding = i + 1 == alloc.extents.size() ? alloc.padding : 0;
    strides[i - 1] = SaturatedProduct(strides[i], SaturatedSum(alloc.extents[i], padding));
  }
  return strides;
}

int64_t ElementCount(const Alloc& alloc) {
  if (alloc.extents.empty()) return 1;
  const int64_t padding = alloc.extents.size() == 1 ? alloc.padding : 0;
  return SaturatedProduct(Strides(alloc)[0], SaturatedSum(alloc.extents[0], padding));
}

}  // namespace hackc::ir
