#include "headrace/telemetry/tensorboard.h"

#include <unistd.h>

#include <atomic>
#include <bit>

#include "headrace/os/folder.h"
#include "headrace/telemetry/crc32c.h"

namespace headrace::telemetry {
namespace {

namespace fs = std::filesystem;

// Protobuf wire types.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Field numbers of Event, Summary and Summary.Value.
enum Field : uint32_t {
  kEventWallTime = 1,
  kEventStep = 2,
  kEventFileVersion = 3,
  kEventSummary = 5,
  kSummaryValue = 1,
  kValueTag = 1,
  kValueSimple = 2,
};

template <typename Unsigned>
void put_fixed(std::string& out, Unsigned value) {
  for (size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i));
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, Field field, Wire wire) { put_varint(out, (uint64_t{field} << 3) | wire); }

void put_bytes(std::string& out, Field field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string begin_event(double wall_time_s) {
  std::string event;
  put_key(event, kEventWallTime, kFixed64);
  put_fixed(event, std::bit_cast<uint64_t>(wall_time_s));
  return event;
}

fs::path new_event_file(const fs::path& folder, double wall_time_s) {
  os::create_folders(folder);
  // Two writers of one second must not share a file.
  static std::atomic<int> counter{0};
  return folder / ("events.out.tfevents." + std::to_string(static_cast<int64_t>(wall_time_s)) + "." +
                   std::to_string(::getpid()) + "." + std::to_string(counter++));
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, double wall_time_s)
    : file_(new_event_file(folder, wall_time_s)) {
  file_.write(frame_record(encode_version_event(wall_time_s)));
}

void TensorBoardWriter::add_scalar(std::string_view tag, int64_t step, float value, double wall_time_s) {
  file_.write(frame_record(encode_scalar_event(tag, step, value, wall_time_s)));
}

std::string frame_record(std::string_view payload) {
  std::string frame;
  put_fixed(frame, uint64_t{payload.size()});
  put_fixed(frame, masked_crc32c(frame));
  frame += payload;
  put_fixed(frame, masked_crc32c(payload));
  return frame;
}

std::string encode_version_event(double wall_time_s) {
  std::string event = begin_event(wall_time_s);
  put_bytes(event, kEventFileVersion, "brain.Event:2");
  return event;
}

std::string encode_scalar_event(std::string_view tag, int64_t step, float value, double wall_time_s) {
  std::string scalar;
  put_bytes(scalar, kValueTag, tag);
  put_key(scalar, kValueSimple, kFixed32);
  put_fixed(scalar, std::bit_cast<uint32_t>(value));
  std::string summary;
  put_bytes(summary, kSummaryValue, scalar);
  std::string event = begin_event(wall_time_s);
  if (step != 0) {  // proto3 leaves out fields that are zero
    put_key(event, kEventStep, kVarint);
    put_varint(event, static_cast<uint64_t>(step));
  }
  put_bytes(event, kEventSummary, summary);
  return event;
}

}  // namespace headrace::telemetry
