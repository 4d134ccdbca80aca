// A point in a device's compute stream, made by Device::record and waited for with Device::wait. Any thread.
#pragma once

#include <memory>
#include <utility>

namespace headrace::device {

// Copies are the same point. A default event has been passed already.
class Event {
 public:
  Event() = default;
  // `mark` is the runtime's own event, released with the last copy.
  explicit Event(std::shared_ptr<void> mark) : mark_(std::move(mark)) {}

  void* mark() const { return mark_.get(); }  // null: passed already

 private:
  std::shared_ptr<void> mark_;
};

}  // namespace headrace::device
