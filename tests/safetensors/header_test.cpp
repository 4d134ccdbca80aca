#include "headrace/safetensors/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/errors.h"
#include "tests/safetensors/build_file.h"

namespace headrace::safetensors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Header parse(const std::string& file) { return parse_header(bytes_in(file), "x.safetensors"); }

// The file must be refused with a message that names the file and holds `fact`.
void expect_refused(const std::string& file, const std::string& fact) {
  try {
    parse(file);
    ADD_FAILURE() << "accepted; expected: " << fact;
  } catch (const DataError& error) {
    EXPECT_EQ(error.place(), "safetensors.open");
    EXPECT_THAT(error.what(), HasSubstr("x.safetensors: "));
    EXPECT_THAT(error.what(), HasSubstr(fact));
  }
}

void expect_header_refused(const std::string& header, const std::string& data, const std::string& fact) {
  SCOPED_TRACE(header);
  expect_refused(file_of(header, data), fact);
}

std::string good_file() {
  return file_of("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "F32", "[2,1]", 4, 12) + "," +
                     entry("a", "U8", "[4]", 0, 4) + "}  ",
                 "abcd01234567");
}

TEST(Header, ListsTensorsInTheOrderOfTheirData) {
  const std::string file = good_file();
  const Header header = parse(file);
  ASSERT_EQ(header.tensors.size(), 2U);
  const TensorInfo &a = header.tensors[0], &b = header.tensors[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(file.substr(static_cast<size_t>(a.begin), static_cast<size_t>(a.end - a.begin)), "abcd");
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.dtype, DType::kF32);
  EXPECT_THAT(b.shape, ElementsAre(2, 1));
  EXPECT_EQ(file.substr(static_cast<size_t>(b.begin), static_cast<size_t>(b.end - b.begin)), "01234567");
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(Header, AcceptsNoTensorsScalarsAndEmptyTensors) {
  EXPECT_TRUE(parse(file_of("{}", "")).tensors.empty());
  EXPECT_TRUE(parse(file_of("{\"__metadata__\":{}}", "")).tensors.empty());
  const std::string header = "{" + entry("z", "F32", "[0,9223372036854775807]", 4, 4) + "," +
                             entry("s", "F32", "[]", 0, 4) + "," + entry("y", "F32", "[3,0]", 0, 0) + "}";
  const Header parsed = parse(file_of(header, "1234"));
  ASSERT_EQ(parsed.tensors.size(), 3U);
  EXPECT_EQ(parsed.tensors[0].name, "y");
  EXPECT_EQ(parsed.tensors[1].name, "s");
  EXPECT_EQ(parsed.tensors[2].begin, parsed.tensors[2].end);
}

TEST(Header, RefusesEveryTruncation) {
  const std::string file = good_file();
  ASSERT_NO_THROW(parse(file));
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_THROW(parse(file.substr(0, length)), DataError) << length;
  }
  expect_refused(file + "x", "holds 13 bytes of data but its tensors end at 12");
}

// Every byte of a good file replaced by every value: never a crash, and what is accepted stays inside the file.
TEST(Header, SurvivesEveryChangedByte) {
  const std::string file = good_file();
  int accepted = 0;
  for (size_t at = 0; at < file.size() - 12; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      try {
        for (const TensorInfo& tensor : parse(changed).tensors) {
          ASSERT_LE(tensor.begin, tensor.end);
          ASSERT_LE(tensor.end, static_cast<int64_t>(changed.size()));
        }
        ++accepted;
      } catch (const DataError&) {
        continue;
      }
    }
  }
  EXPECT_GT(accepted, 0) << "a changed letter of a name is no error";
}

TEST(Header, RefusesBadLengths) {
  expect_refused("", "has 0 bytes");
  expect_refused("1234567", "has 7 bytes");
  expect_refused(with_length(3, "{}"), "says its header has 3 bytes but only 2 follow");
  expect_refused(with_length(100'000'001, "{}"), "at most 100000000");
  expect_refused(with_length(UINT64_MAX, "{}"), "18446744073709551615");
  expect_refused(with_length(UINT64_MAX - 7, "{}"), "18446744073709551608");
}

TEST(Header, RefusesWhatIsNoJsonObject) {
  for (const std::string text : {"", " {}", "[]", "\xef\xbb\xbf{}", "PK\x03\x04"}) {
    expect_header_refused(text, "", "does not begin with '{'");
  }
  for (const std::string text : {"{", "{}x", "{}{}", "{\"a\"}", "{\"a\":}", "{'a':1}", "{\"__metadata__\":{},}",
                                 "{\"a\xff\":{}}", "{\"\xc3\":{}}", "{\"\\ud800\":{}}", "{}\xc2\xa0"}) {
    expect_header_refused(text, "", "not valid JSON");
  }
  std::string zero = "{}";
  zero += '\0';
  expect_header_refused(zero, "", "zero byte");
}

TEST(Header, RefusesValuesOutOfPlace) {
  for (const std::string value : {"1", "-1", "1.5", "1e400", "null", "true", "\"x\"", "[]"}) {
    expect_header_refused("{\"a\":" + value + "}", "", value == "1e400" ? "not valid JSON" : "where none belongs");
    expect_header_refused("{\"a\":{\"shape\":{\"x\":" + value + "}}}", "", "an object where none belongs");
    if (value != "[]") expect_header_refused("{\"a\":{\"dtype\":[" + value + "]}}", "", "an array where none belongs");
    if (value != "\"x\"") {
      expect_header_refused("{\"__metadata__\":{\"k\":" + value + "}}", "",
                            value == "1e400" ? "not valid JSON" : "where none belongs");
    }
  }
  expect_header_refused("{\"__metadata__\":{\"k\":{}}}", "", "an object where none belongs");
  expect_header_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[[1]],\"data_offsets\":[0,1]}}", "1",
                        "an array where none");
  expect_header_refused("{\"a\":" + std::string(100000, '['), "", "an array where none belongs");
  expect_header_refused(std::string(100000, '{'), "", "not valid JSON");
}

TEST(Header, RefusesMissingUnknownAndRepeatedKeys) {
  expect_header_refused("{\"a\":{}}", "", "lacks dtype, shape or data_offsets");
  expect_header_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", "1", "lacks");
  expect_header_refused("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", "1", "lacks");
  expect_header_refused("{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", "1", "lacks");
  expect_header_refused("{\"a\":{\"stride\":[1]}}", "", "unknown key 'stride'");
  expect_header_refused("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "", "names 'dtype' twice");
  expect_header_refused("{\"a\":{\"shape\":[],\"shape\":[]}}", "", "names 'shape' twice");
  expect_header_refused("{\"a\":{\"data_offsets\":[0,0],\"data_offsets\":[0,0]}}", "", "names 'data_offsets' twice");
  expect_header_refused("{\"__metadata__\":{},\"__metadata__\":{}}", "", "names __metadata__ twice");
  expect_header_refused("{\"__metadata__\":{\"k\":\"1\",\"k\":\"1\"}}", "", "names 'k' twice");
  const std::string a = entry("a", "U8", "[0]", 0, 0);
  expect_header_refused("{" + a + "," + a + "}", "", "names tensor 'a' twice");
}

TEST(Header, RefusesBadOffsets) {
  expect_header_refused("{" + entry("a", "U8", "[2]", 2, 0) + "}", "12", "[2, 0], end before begin");
  expect_header_refused("{" + entry("a", "U8", "[3]", 0, 3) + "}", "12", "[0, 3] but the file holds 2 bytes");
  expect_header_refused("{" + entry("a", "U8", "[1]", 1, 2) + "}", "12", "a hole");
  expect_header_refused("{" + entry("a", "U8", "[1]", 0, 1) + "," + entry("b", "U8", "[1]", 2, 3) + "}", "123",
                        "a hole");
  expect_header_refused("{" + entry("a", "U8", "[2]", 0, 2) + "," + entry("b", "U8", "[2]", 1, 3) + "}", "123",
                        "overlap");
  expect_header_refused("{" + entry("a", "U8", "[1]", 0, 1) + "}", "12", "its tensors end at 1");
  expect_header_refused("{" + entry("a", "U8", "[0]", 1, 1) + "}", "", "[1, 1] but the file holds 0");
  for (const std::string offsets : {"[]", "[0]", "[0,0,0]"}) {
    expect_header_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":" + offsets + "}}", "",
                          "data_offsets");
  }
  for (const std::string number : {"-1", "0.0", "1e3", "18446744073709551616"}) {
    expect_header_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0," + number + "]}}", "",
                          "where none belongs");
  }
  expect_header_refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,9223372036854775808]}}", "",
                        "63 bits");
}

TEST(Header, RefusesSizesThatDoNotMatchOrOverflow) {
  expect_header_refused("{" + entry("a", "F32", "[2]", 0, 7) + "}", "1234567", "has 7 bytes of data but its dtype F32");
  expect_header_refused("{" + entry("a", "F32", "[0]", 0, 1) + "}", "1", "need 0");
  // 2^32 * 2^32 elements wrap to 0 in 64 bits.
  expect_header_refused("{" + entry("a", "U8", "[4294967296,4294967296]", 0, 0) + "}", "", "more than 2^63 bits");
  expect_header_refused("{" + entry("a", "F64", "[9223372036854775807]", 0, 0) + "}", "", "more than 2^63 bits");
  expect_header_refused("{" + entry("a", "F4", "[3]", 0, 2) + "}", "12", "12 bits");
  EXPECT_NO_THROW(parse(file_of("{" + entry("a", "F4", "[3,2]", 0, 3) + "}", "123")));
  EXPECT_NO_THROW(parse(file_of("{" + entry("a", "F6_E2M3", "[4]", 0, 3) + "}", "123")));
}

TEST(Header, RefusesUnknownTypes) {
  for (const std::string dtype : {"", "f32", "F32 ", "FLOAT", "F128"}) {
    expect_header_refused("{" + entry("a", dtype, "[0]", 0, 0) + "}", "", "unknown dtype '" + dtype + "'");
  }
}

TEST(Header, MessagesStayShortAndPrintable) {
  const std::string name(100000, 'n');
  try {
    parse(file_of("{\"" + name + "\\u001b\":1, \"" + name + "\":", ""));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_LT(std::string(error.what()).size(), 1000U);
  }
  expect_header_refused("{\"a\\u001b[2J\":null}", "", "'a?[2J'");
  expect_header_refused("{\"" + name + "\":" + name, "", "not valid JSON");
}

TEST(Header, ManyTensorsTakeLinearTime) {
  std::string header = "{";
  constexpr int kCount = 200000;
  for (int i = 0; i < kCount; ++i) header += (i == 0 ? "" : ",") + entry(std::to_string(i), "U8", "[]", i, i + 1);
  EXPECT_EQ(parse(file_of(header + "}", std::string(kCount, 'x'))).tensors.size(), static_cast<size_t>(kCount));
}

TEST(DType, NamesAndSizesAgree) {
  for (int i = 0; i <= static_cast<int>(DType::kU64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(name_of(dtype)), dtype);
  }
  EXPECT_EQ(bits_of(DType::kBF16), 16);
  EXPECT_EQ(bits_of(DType::kF4), 4);
  EXPECT_EQ(bits_of(DType::kC64), 64);
  EXPECT_EQ(dtype_named("bf16"), std::nullopt);
}

}  // namespace
}  // namespace headrace::safetensors
