// A call of an operator as a key for its price, and as the JSON text that the owner reads.
//
// Both hold what a price may depend on: the forms of tensors, whole numbers and truth values. The
// numbers that are computed with are left out, as they change from call to call. So are fractions.

#include "device.h"

#include <c10/core/ScalarType.h>

namespace torch_device {

namespace {

using at::Tensor;
using c10::IValue;

class Key {
 public:
  explicit Key(std::string& text) : text_(text) {}
  void none() { text_ += 'n'; }
  void truth(bool value) { text_ += value ? 'y' : 'f'; }
  void whole(int64_t value) { tagged('i', value); }
  void begin(size_t count) { tagged('l', static_cast<int64_t>(count)); }
  void end() {}
  void tensor(const Tensor& tensor) {
    text_ += 't';
    text_ += static_cast<char>(tensor.scalar_type());
    text_ += static_cast<char>(tensor.dim());
    append(tensor.sizes());
    append(tensor.strides());
  }

 private:
  void tagged(char tag, int64_t value) {
    text_ += tag;
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void append(at::IntArrayRef values) {
    text_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  }

  std::string& text_;
};

class Text {
 public:
  std::string text;

  void none() { value("null"); }
  void truth(bool given) { value(given ? "true" : "false"); }
  void whole(int64_t given) { value(std::to_string(given)); }
  void begin(size_t) {
    value("{\"list\":[");
    first_ = true;
  }
  void end() {
    text += "]}";
    first_ = false;
  }
  void tensor(const Tensor& tensor) {
    value("{\"address\":0,\"shape\":" + list(tensor.sizes()) + ",\"strides\":" +
          list(tensor.strides()) + ",\"dtype\":\"" +
          std::string(c10::getDtypeNames(tensor.scalar_type()).first) + "\"}");
  }
  // Writes what stands between two lists.
  void between(const std::string& written) {
    text += written;
    first_ = true;
  }

 private:
  void value(const std::string& written) {
    if (!first_) text += ',';
    first_ = false;
    text += written;
  }
  static std::string list(at::IntArrayRef values) {
    std::string written = "[";
    for (const int64_t value : values) {
      if (written.size() > 1) written += ',';
      written += std::to_string(value);
    }
    return written + ']';
  }

  bool first_ = true;
};

template <class Sink>
void write_tensor(Sink& sink, const Tensor& tensor) {
  const bool stated = tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number() &&
                      tensor.layout() == at::kStrided;
  stated ? sink.tensor(tensor) : sink.none();
}

template <class Sink>
void write_value(Sink& sink, const IValue& value) {
  if (value.isTensor()) return write_tensor(sink, value.toTensor());
  if (value.isBool()) return sink.truth(value.toBool());
  if (value.isInt()) return sink.whole(value.toInt());
  if (!value.isList()) return sink.none();
  const auto list = value.toListRef();
  sink.begin(list.size());
  for (const IValue& item : list) write_value(sink, item);
  sink.end();
}

bool is_computed_with(const c10::Argument& argument) {
  c10::TypePtr type = argument.type();
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->expectRef<c10::OptionalType>().getElementType();
  return type->kind() == c10::TypeKind::NumberType;
}

template <class Sink>
void write_arguments(Sink& sink, const c10::FunctionSchema& schema, Values arguments) {
  const auto& known = schema.arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    arguments[i].isTensor() || !is_computed_with(known[i]) ? write_value(sink, arguments[i])
                                                           : sink.none();
}

}  // namespace

void write_key(std::string& key, const c10::OperatorHandle& op, Values arguments,
               const Values* results) {
  const void* schema = &op.schema();
  key.assign(reinterpret_cast<const char*>(&schema), sizeof schema);
  Key sink(key);
  write_arguments(sink, op.schema(), arguments);
  if (results == nullptr) return;
  sink.begin(results->size());
  for (const IValue& result : *results) write_value(sink, result);
}

std::string written_text(const c10::OperatorHandle& op, Values arguments, const Values* results) {
  const auto& name = op.operator_name();
  Text sink;
  sink.between("{\"operator\":\"" + name.name + "\",\"overload\":\"" + name.overload_name +
            "\",\"arguments\":[");
  write_arguments(sink, op.schema(), arguments);
  sink.between("],\"results\":[");
  if (results != nullptr)
    for (const IValue& result : *results) write_value(sink, result);
  return sink.text + "]}";
}

}  // namespace torch_device
