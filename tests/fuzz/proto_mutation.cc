// SPDX-License-Identifier: MIT
#include "tests/fuzz/proto_mutation.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>

#include <cmath>
#include <iterator>
#include <memory>
#include <vector>

namespace hackc::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The message and all below it.
void Collect(Message* message, std::vector<Message*>& all) {
  if (all.size() > 1000) return;
  all.push_back(message);
  const Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(reflection->MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      Collect(reflection->MutableRepeatedMessage(message, field, i), all);
    }
  }
}

std::string InterestingString(Random& random) {
  static const std::string kValues[] = {"",        "seq",         "batch",
                                        "past",    "{layer}",     "a/b",
                                        "..",      "sm_90a",      "sm_1",
                                        "\xff",    "x",           "model.layers.{layer}.w",
                                        "sha256:", "weight_name", "num_hidden_layers"};
  if (random.OneIn(12)) return std::string(random.Below(5000), 'x');
  return kValues[random.Below(std::size(kValues))];
}

double InterestingDouble(Random& random) {
  const double kValues[] = {0, -1, 0.5, 1, 2, 7, 64, 1e18, 1e300, 1e-300, NAN, INFINITY};
  return kValues[random.Below(std::size(kValues))];
}

// Sets or, where the field is repeated, appends.
void SetScalar(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection* r = message->GetReflection();
  const bool repeated = field->is_repeated();
  const int64_t integer = InterestingInteger(random);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      repeated ? r->AddInt32(message, field, static_cast<int32_t>(integer))
               : r->SetInt32(message, field, static_cast<int32_t>(integer));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      repeated ? r->AddInt64(message, field, integer) : r->SetInt64(message, field, integer);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      repeated ? r->AddUInt32(message, field, static_cast<uint32_t>(integer))
               : r->SetUInt32(message, field, static_cast<uint32_t>(integer));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      repeated ? r->AddUInt64(message, field, static_cast<uint64_t>(integer))
               : r->SetUInt64(message, field, static_cast<uint64_t>(integer));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!repeated) r->SetDouble(message, field, InterestingDouble(random));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      if (!repeated) r->SetBool(message, field, random.OneIn(2));
      break;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = static_cast<int>(random.Below(10));  // some that are not declared
      repeated ? r->AddEnumValue(message, field, value) : r->SetEnumValue(message, field, value);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text = InterestingString(random);
      if (field->type() == FieldDescriptor::TYPE_STRING && text == "\xff") text = "x";
      repeated ? r->AddString(message, field, text) : r->SetString(message, field, text);
      break;
    }
    default: break;
  }
}

// Protobuf says on standard error what does not parse; here most does not.
[[maybe_unused]] const bool kQuiet = (google::protobuf::SetLogHandler(nullptr), true);

}  // namespace

void MutateMessage(Message& root, Random& random) {
  std::vector<Message*> all;
  Collect(&root, all);
  Message* message = all[random.Below(all.size())];
  const auto* descriptor = message->GetDescriptor();
  if (descriptor->field_count() == 0) return;
  const FieldDescriptor* field =
      descriptor->field(static_cast<int>(random.Below(descriptor->field_count())));
  const Reflection* reflection = message->GetReflection();
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const int size = field->is_repeated() ? reflection->FieldSize(*message, field) : 0;
  switch (random.Below(6)) {
    case 0: reflection->ClearField(message, field); return;
    case 1:
      if (size > 0) reflection->RemoveLast(message, field);
      return;
    case 2:
      if (size > 1) {
        reflection->SwapElements(message, field, static_cast<int>(random.Below(size)),
                                 static_cast<int>(random.Below(size)));
      }
      return;
    default: break;
  }
  if (!is_message) return SetScalar(message, field, random);
  // A copy from elsewhere, also of a whole that holds this place: trees grow deeper. It is copied
  // first, since setting one field of a oneof frees the other.
  std::vector<const Message*> alike;
  for (const Message* other : all) {
    if (other->GetDescriptor() == field->message_type()) alike.push_back(other);
  }
  std::unique_ptr<Message> copy;
  if (!alike.empty()) {
    const Message* source = alike[random.Below(alike.size())];
    copy.reset(source->New());
    copy->CopyFrom(*source);
  }
  Message* target = field->is_repeated() ? reflection->AddMessage(message, field)
                                         : reflection->MutableMessage(message, field);
  if (copy && copy->ByteSizeLong() < 4096) target->CopyFrom(*copy);
}

}  // namespace hackc::fuzz
