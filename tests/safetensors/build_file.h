// Builds the bytes of safetensors files, right or wrong, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace headrace::safetensors {

inline std::string with_length(uint64_t length, const std::string& rest) {
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(length >> (8 * i));
  return file + rest;
}

inline std::string file_of(const std::string& header, const std::string& data) {
  return with_length(header.size(), header + data);
}

// One entry of a header.
inline std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, int64_t begin,
                         int64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

inline std::span<const std::byte> bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

inline std::string text_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void put_file(const std::filesystem::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

}  // namespace headrace::safetensors
