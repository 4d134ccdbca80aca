#include "headrace/safetensors/header_reader.h"

#include <limits>
#include <utility>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"

namespace headrace::safetensors {
namespace {

constexpr size_t kLongestInMessage = 120, kLongestParserText = 300;

// Where in {"__metadata__": {"k": "v"}, "name": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}} we are.
enum class At { kStart, kRoot, kMetadata, kTensor, kShape, kOffsets, kEnd };

class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  Header header;
  std::string wrong;  // why reading stopped; empty when it did not

  bool start_object(size_t) override {
    if (at_ == At::kStart) return move_to(At::kRoot);
    if (at_ != At::kRoot) return unexpected("an object");
    if (key_ == "__metadata__") return start_metadata();
    header.tensors.emplace_back().name = key_;
    has_dtype_ = has_shape_ = false;
    num_offsets_ = 0;
    return move_to(At::kTensor);
  }

  bool end_object() override {
    if (at_ == At::kRoot) return move_to(At::kEnd);
    if (at_ == At::kTensor && !(has_dtype_ && has_shape_ && num_offsets_ == 2)) {
      return fail("tensor " + in_quotes(tensor().name) + " lacks dtype, shape or data_offsets.");
    }
    return move_to(At::kRoot);
  }

  bool key(string_t& name) override {
    key_ = std::move(name);
    if (at_ != At::kTensor || key_ == "dtype" || key_ == "shape" || key_ == "data_offsets") return true;
    return fail("tensor " + in_quotes(tensor().name) + " has the unknown key " + in_quotes(key_) + ".");
  }

  bool string(string_t& value) override {
    if (at_ == At::kMetadata) {
      if (header.metadata.emplace(key_, std::move(value)).second) return true;
      return fail("__metadata__ names " + in_quotes(key_) + " twice.");
    }
    if (at_ != At::kTensor || key_ != "dtype") return unexpected("a string");
    if (std::exchange(has_dtype_, true)) return twice();
    const auto dtype = dtype_named(value);
    if (!dtype) return fail("tensor " + in_quotes(tensor().name) + " has the unknown dtype " + in_quotes(value) + ".");
    tensor().dtype = *dtype;
    return true;
  }

  bool start_array(size_t) override {
    if (at_ != At::kTensor) return unexpected("an array");
    if (key_ == "shape") return std::exchange(has_shape_, true) ? twice() : move_to(At::kShape);
    if (key_ == "data_offsets") return num_offsets_ != 0 ? twice() : move_to(At::kOffsets);
    return unexpected("an array");
  }

  bool end_array() override {
    if (at_ == At::kOffsets && num_offsets_ != 2) {
      return fail("tensor " + in_quotes(tensor().name) + " has " + std::to_string(num_offsets_) +
                  " data_offsets; 2 are needed.");
    }
    return move_to(At::kTensor);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != At::kShape && at_ != At::kOffsets) return unexpected("a number");
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max())) {
      return fail("tensor " + in_quotes(tensor().name) + " has a number of more than 63 bits.");
    }
    const auto number = static_cast<int64_t>(value);
    if (at_ == At::kShape) {
      tensor().shape.push_back(number);
    } else if (num_offsets_ < 2) {
      (num_offsets_ == 0 ? tensor().begin : tensor().end) = number;
    }
    if (at_ == At::kOffsets && ++num_offsets_ > 2) {
      return fail("tensor " + in_quotes(tensor().name) + " has more than 2 data_offsets.");
    }
    return true;
  }

  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a number that is no integer"); }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // The parser repeats the token it stumbled over, however long.
    return fail("its header is not valid JSON: " + std::string(error.what()).substr(0, kLongestParserText) + ".");
  }

 private:
  TensorInfo& tensor() { return header.tensors.back(); }

  bool move_to(At next) {
    at_ = next;
    return true;
  }

  bool start_metadata() {
    if (std::exchange(has_metadata_, true)) return fail("names __metadata__ twice.");
    return move_to(At::kMetadata);
  }

  bool fail(std::string fact) {
    if (wrong.empty()) wrong = std::move(fact);
    return false;
  }

  bool twice() { return fail("tensor " + in_quotes(tensor().name) + " names " + in_quotes(key_) + " twice."); }

  bool unexpected(const std::string& what) {
    if (at_ == At::kStart) return fail("its header is not a JSON object.");
    return fail("its header has " + what + " where none belongs, at " + in_quotes(key_) + ".");
  }

  At at_ = At::kStart;
  std::string key_;
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false;
  int num_offsets_ = 0;
};

}  // namespace

Header read_header_json(std::string_view json, std::string_view source) {
  HeaderReader reader;
  // The format wants '{' first, which also excludes a byte order mark that the parser would skip.
  if (json.empty() || json.front() != '{') {
    reader.wrong = "its header does not begin with '{'. It is probably not a safetensors file.";
  } else if (json.find('\0') != std::string_view::npos) {
    reader.wrong = "its header holds a zero byte.";  // the parser would take it for the end
  } else {
    Json::sax_parse(json.begin(), json.end(), &reader);
  }
  if (!reader.wrong.empty()) throw DataError("safetensors.open", std::string(source) + ": " + reader.wrong);
  return std::move(reader.header);
}

std::string in_quotes(std::string_view name) {
  std::string text = "'";
  for (const char character : name.substr(0, kLongestInMessage)) {
    const auto code = static_cast<unsigned char>(character);
    text += code < 0x20 || code == 0x7f ? '?' : character;
  }
  return text + (name.size() > kLongestInMessage ? "...'" : "'");
}

}  // namespace headrace::safetensors
