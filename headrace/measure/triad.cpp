#include "headrace/measure/triad.h"

#include <hwy/cache_control.h>

#include <string>

#include "headrace/base/errors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headrace/measure/triad.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace headrace::measure::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kBlock = 32;  // [elements]
constexpr size_t kLineBytes = 64;
constexpr size_t kPrefetchAhead = 128;  // [elements]

HWY_INLINE void prefetch_block(const Stream& stream, size_t i) {
  const std::byte* ahead = stream.data + (i + kPrefetchAhead) * stream.width;
  for (size_t line = 0; line < kBlock * stream.width; line += kLineBytes) hwy::Prefetch(ahead + line);
}

void triad_range(const Streams& streams, size_t begin, size_t end, unsigned char mask, bool prefetch) {
  const hn::CappedTag<uint8_t, kLineBytes> d;
  const auto at = [](const Stream& s, size_t i) { return reinterpret_cast<uint8_t*>(s.data + i * s.width); };
  const auto keep = hn::Set(d, mask);
  for (size_t i = begin; i < end; i += kBlock) {
    if (prefetch) {
      for (const Stream& s : streams.updated) prefetch_block(s, i);
      prefetch_block(streams.read, i);
    }
    const uint8_t* read = at(streams.read, i);
    const size_t read_bytes = kBlock * streams.read.width;
    for (size_t k = 0; k < read_bytes; k += hn::Lanes(d)) {
      const auto change = hn::And(hn::Load(d, read + k), keep);
      for (const Stream& s : streams.updated) {
        // Streams twice as wide as the one read take each of its vectors twice, narrower ones every other.
        uint8_t* to = at(s, i);
        if (k < kBlock * s.width) hn::Store(hn::Or(hn::Load(d, to + k), change), d, to + k);
        if (s.width > streams.read.width) {
          hn::Store(hn::Or(hn::Load(d, to + read_bytes + k), change), d, to + read_bytes + k);
        }
      }
      for (const Stream& s : streams.written) {
        if (k < kBlock * s.width) hn::Stream(change, d, at(s, i) + k);
      }
    }
  }
  hwy::FlushStream();
}

}  // namespace headrace::measure::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::measure {

HWY_EXPORT(triad_range);

void triad(const Streams& streams, size_t begin, size_t end, unsigned char mask, bool prefetch) {
  if (begin > end || begin % 32 != 0 || end % 32 != 0) {
    throw InternalError("measure.triad", "elements " + std::to_string(begin) + " to " + std::to_string(end) +
                                             " must ascend and be multiples of 32.");
  }
  HWY_DYNAMIC_DISPATCH(triad_range)(streams, begin, end, mask, prefetch);
}

size_t bytes_per_element(const Streams& streams) {
  size_t bytes = streams.read.width;
  for (const Stream& s : streams.updated) bytes += 2 * s.width;
  for (const Stream& s : streams.written) bytes += s.width;
  return bytes;
}

}  // namespace headrace::measure
#endif
