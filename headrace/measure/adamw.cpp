#include "headrace/measure/adamw.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "headrace/base/errors.h"
#include "headrace/base/rng.h"
#include "headrace/kernel/adamw.h"
#include "headrace/measure/triad.h"
#include "headrace/measure/workers.h"

namespace headrace::measure {
namespace {

// A precaution: arrays a power of two apart could meet in the same sets of the caches.
constexpr size_t kStagger = 11 * 1024 + 64;

// One mapping, given back at the end.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) {
      throw CapacityError("measure.adamw",
                          std::to_string(bytes) + " bytes of host memory are not to be had. Fewer --params.");
    }
    ::madvise(data_, bytes, MADV_HUGEPAGE);  // a wish
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  template <class T>
  std::span<T> take(size_t count) {
    T* begin = reinterpret_cast<T*>(static_cast<std::byte*>(data_) + used_);
    used_ += count * sizeof(T) + kStagger;
    return {begin, count};
  }

 private:
  void* data_;
  size_t bytes_, used_ = 0;
};

constexpr size_t kArrays = 7, kBytesAParameter = 4 * sizeof(float) + 2 * sizeof(kernel::Bf16) + sizeof(int16_t);

AdamWArrays take_arrays(Pages& pages, size_t count) {
  AdamWArrays arrays{};
  for (auto* span : {&arrays.master, &arrays.m, &arrays.v, &arrays.gradient}) *span = pages.take<float>(count);
  for (auto* span : {&arrays.narrow_gradient, &arrays.weight}) *span = pages.take<kernel::Bf16>(count);
  arrays.lower = pages.take<int16_t>(count);
  Rng rng(1);
  std::vector<float> values(4096);
  for (float& x : values) x = static_cast<float>(rng.normal());
  for (size_t i = 0; i < count; ++i) arrays.gradient[i] = values[i % values.size()];
  for (size_t i = 0; i < count; ++i) arrays.master[i] = values[(i + 1) % values.size()];
  kernel::to_bf16(arrays.gradient, arrays.narrow_gradient);
  kernel::split(arrays.master, arrays.weight, arrays.lower);
  return arrays;
}

struct Variant {
  const char* name;
  enum { plain, rounded, split } master;
  bool has_bf16_gradient;
};

constexpr Variant kVariants[] = {
    {"fp32 gradient, fp32 master", Variant::plain, false},
    {"bf16 gradient, fp32 master", Variant::plain, true},
    {"fp32 gradient, fp32 master, bf16 weight out", Variant::rounded, false},
    {"bf16 gradient, fp32 master, bf16 weight out", Variant::rounded, true},
    {"fp32 gradient, split master", Variant::split, false},
    {"bf16 gradient, split master", Variant::split, true},
};

void update(const Variant& variant, const AdamWArrays& a, size_t begin, size_t end) {
  const auto part = [&](auto span) { return span.subspan(begin, end - begin); };
  const kernel::AdamWStep step{.learning_rate = 1e-6, .weight_decay = 0.01, .step = 1000, .gradient_scale = 0.5f};
  kernel::Gradient gradient = std::span<const float>(part(a.gradient));
  if (variant.has_bf16_gradient) gradient = std::span<const kernel::Bf16>(part(a.narrow_gradient));
  if (variant.master == Variant::plain) kernel::adamw_update(part(a.master), part(a.m), part(a.v), gradient, step);
  if (variant.master == Variant::rounded) {
    kernel::adamw_update(kernel::RoundedMaster{part(a.master), part(a.weight)}, part(a.m), part(a.v), gradient, step);
  }
  if (variant.master == Variant::split) {
    kernel::adamw_update(kernel::SplitMaster{part(a.weight), part(a.lower)}, part(a.m), part(a.v), gradient, step);
  }
}

template <class T>
Stream stream_of(std::span<T> span) {
  return {reinterpret_cast<std::byte*>(span.data()), sizeof(T)};
}

Streams streams_of(const Variant& variant, const AdamWArrays& a) {
  Streams streams{{stream_of(a.m), stream_of(a.v)},
                  variant.has_bf16_gradient ? stream_of(a.narrow_gradient) : stream_of(a.gradient),
                  {}};
  if (variant.master != Variant::split) streams.updated.push_back(stream_of(a.master));
  if (variant.master == Variant::rounded) streams.written.push_back(stream_of(a.weight));
  if (variant.master == Variant::split) {
    streams.updated.push_back(stream_of(a.weight));
    streams.updated.push_back(stream_of(a.lower));
  }
  return streams;
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// What was timed of one row: parameters and triad bytes a second, round by round.
struct Rounds {
  std::string variant;
  double bytes_per_param;
  std::vector<double> params_per_s, triad_bytes_per_s;
};

AdamWRow row_of(const Rounds& rounds, int threads) {
  std::vector<double> shares;
  for (size_t i = 0; i < rounds.params_per_s.size(); ++i) {
    shares.push_back(rounds.params_per_s[i] * rounds.bytes_per_param / rounds.triad_bytes_per_s[i]);
  }
  const double median = quantile(rounds.params_per_s, 0.5);
  return {
      .variant = rounds.variant,
      .threads = threads,
      .bytes_per_param = rounds.bytes_per_param,
      .mparam_per_s = median / 1e6,
      .mparam_per_s_quartiles = {quantile(rounds.params_per_s, 0.25) / 1e6, quantile(rounds.params_per_s, 0.75) / 1e6},
      .gb_per_s = median * rounds.bytes_per_param / 1e9,
      .share_of_triad = quantile(shares, 0.5),
      .triad_gb_per_s = quantile(rounds.triad_bytes_per_s, 0.5) / 1e9};
}

// All rounds on one number of threads.
class Timing {
 public:
  Timing(const AdamWArrays& arrays, int threads) : arrays_(arrays), workers_(threads) {}

  // The faster of the two triads; `mask` is 0, which the compiler must not see.
  double triad_bytes_per_s(const Streams& streams, unsigned char mask) {
    double best = 0;
    for (const bool prefetch : {true, false}) {
      const double s = on_parts([&](size_t begin, size_t end) { triad(streams, begin, end, mask, prefetch); });
      best = std::max(best, static_cast<double>(arrays_.m.size() * bytes_per_element(streams)) / s);
    }
    return best;
  }

  double params_per_s(const Variant& variant) {
    const double s = on_parts([&](size_t begin, size_t end) { update(variant, arrays_, begin, end); });
    return static_cast<double>(arrays_.m.size()) / s;
  }

  double params_per_s(const Contender& contender) {
    const double s = seconds([&] { contender.step(arrays_, workers_.count()); });
    return static_cast<double>(arrays_.m.size()) / s;
  }

 private:
  // Each worker takes one range, cut at whole blocks.
  template <class Work>
  double on_parts(const Work& work) {
    const size_t blocks = arrays_.m.size() / 32, count = static_cast<size_t>(workers_.count());
    return seconds([&] {
      workers_.run([&](int worker) {
        const auto w = static_cast<size_t>(worker);
        work(blocks * w / count * 32, blocks * (w + 1) / count * 32);
      });
    });
  }

  const AdamWArrays& arrays_;
  Workers workers_;
};

void check(const AdamWSetting& setting) {
  const bool is_fine =
      setting.parameters > 0 && setting.parameters < int64_t{1} << 40 && setting.repeats > 0 &&
      !setting.threads.empty() &&
      std::all_of(setting.threads.begin(), setting.threads.end(), [](int t) { return t > 0 && t <= 1024; });
  if (!is_fine) throw ConfigError("measure.adamw", "parameters, repeats and threads must be at least 1.");
}

}  // namespace

std::vector<AdamWRow> adamw(const AdamWSetting& setting, const std::vector<Contender>& contenders) {
  check(setting);
  const size_t count = (static_cast<size_t>(setting.parameters) + 31) / 32 * 32;
  Pages pages(count * kBytesAParameter + kArrays * kStagger);
  const AdamWArrays arrays = take_arrays(pages, count);
  volatile unsigned char no_mask = 0;
  std::vector<AdamWRow> rows;
  for (const int threads : setting.threads) {
    Timing timing(arrays, threads);
    std::vector<Rounds> all;
    for (const Variant& variant : kVariants) {
      all.push_back({variant.name, static_cast<double>(bytes_per_element(streams_of(variant, arrays))), {}, {}});
    }
    for (const Contender& contender : contenders) all.push_back({contender.variant, contender.bytes_per_param, {}, {}});
    for (int round = 0; round <= setting.repeats; ++round) {
      size_t at = 0;
      const auto record = [&](double params_per_s, double triad) {
        Rounds& rounds = all[at++];
        if (round == 0) return;  // warms up
        rounds.params_per_s.push_back(params_per_s);
        rounds.triad_bytes_per_s.push_back(triad);
      };
      for (const Variant& variant : kVariants) {
        const double triad = timing.triad_bytes_per_s(streams_of(variant, arrays), no_mask);
        record(timing.params_per_s(variant), triad);
      }
      for (const Contender& contender : contenders) {
        const double triad = timing.triad_bytes_per_s(streams_of(kVariants[0], arrays), no_mask);
        record(timing.params_per_s(contender), triad);
      }
    }
    for (const Rounds& rounds : all) rows.push_back(row_of(rounds, threads));
  }
  return rows;
}

}  // namespace headrace::measure
