// TensorBoard's event files, written without protobuf: TFRecord frames around hand-encoded Event messages.
// Formats: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto, and the TFRecord frame
// (length, masked CRC32C of the length, payload, masked CRC32C of the payload; all little-endian).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "headrace/os/output_file.h"

namespace headrace::telemetry {

// Appends scalars to a new event file in a folder. One owner, blocking; each record reaches the system at once.
class TensorBoardWriter {
 public:
  // Makes the folder and a file "events.out.tfevents.<seconds>.<process>" in it. `wall_time_s` is seconds since 1970,
  // as in add_scalar. Throws IoError.
  TensorBoardWriter(const std::filesystem::path& folder, double wall_time_s);

  // `tag` groups by its part before '/': "train/loss". Throws IoError.
  void add_scalar(std::string_view tag, int64_t step, float value, double wall_time_s);

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  os::OutputFile file_;
};

// One TFRecord frame. Pure.
std::string frame_record(std::string_view payload);
// The Event that opens every file. Pure.
std::string encode_version_event(double wall_time_s);
// An Event with one scalar. Pure.
std::string encode_scalar_event(std::string_view tag, int64_t step, float value, double wall_time_s);

}  // namespace headrace::telemetry
