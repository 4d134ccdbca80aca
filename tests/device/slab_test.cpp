#include "headrace/device/slab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <fstream>
#include <utility>
#include <vector>

#include "headrace/base/errors.h"

namespace headrace::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kPage = 4096;

struct Pages {
  int64_t mapped = 0, resident = 0;
};

Pages pages_of_this_process() {
  Pages pages;
  std::ifstream("/proc/self/statm") >> pages.mapped >> pages.resident;
  return pages;
}

bool is_mapped(std::byte* page) {
  unsigned char resident = 0;
  return ::mincore(page, 1, &resident) == 0 || errno != ENOMEM;
}

TEST(Slab, IsExactToAPage) {
  EXPECT_EQ(whole_pages(0), 0);
  EXPECT_EQ(whole_pages(1), kPage);
  EXPECT_EQ(whole_pages(kPage), kPage);
  EXPECT_EQ(whole_pages(kPage + 1), 2 * kPage);
  EXPECT_THROW(whole_pages(-1), InternalError);
  EXPECT_THROW(whole_pages(INT64_MAX), InternalError);
}

TEST(Slab, TwoAndAHalfGiBTakeTwoAndAHalfGiB) {
  constexpr int64_t kAsked = (int64_t{5} << 29) + 1;
  pages_of_this_process();
  const Pages before = pages_of_this_process();
  Slab slab = map_pages(Tier::kHost, kAsked);
  const Pages after = pages_of_this_process();
  EXPECT_EQ(slab.bytes(), kAsked - 1 + kPage);
  EXPECT_EQ(after.mapped - before.mapped, slab.bytes() / kPage);
  EXPECT_LT(after.resident - before.resident, 1024);  // none of its pages was touched
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.data()) % kPage, 0u);
  EXPECT_FALSE(slab.is_page_locked());

  std::byte* const last = slab.data() + slab.bytes() - kPage;
  EXPECT_TRUE(is_mapped(last));
  slab = Slab();
  EXPECT_FALSE(is_mapped(last));
}

TEST(Slab, BelongsToWhoeverItWasMovedTo) {
  std::vector<std::byte*> released;
  std::byte bytes[2];
  const auto note = [&](std::byte* begin) { released.push_back(begin); };
  {
    Slab first(&bytes[0], 1, true, note);
    Slab second = std::move(first);
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(first.bytes(), 0);
    EXPECT_FALSE(first.is_page_locked());
    EXPECT_TRUE(second.is_page_locked());
    EXPECT_EQ(second.bytes(), 1);
    second = Slab(&bytes[1], 1, false, note);
    EXPECT_EQ(released, (std::vector{&bytes[0]}));
  }
  EXPECT_EQ(released, (std::vector{&bytes[0], &bytes[1]}));
}

TEST(Slab, WithoutBytesHasNoMemory) {
  const Slab slab = map_pages(Tier::kDevice, 0);
  EXPECT_EQ(slab.data(), nullptr);
  EXPECT_EQ(slab.bytes(), 0);
}

TEST(Slab, RefusalNamesTierNeedHaveAndKnob) {
  for (const Tier tier : {Tier::kDevice, Tier::kHost}) {
    try {
      map_pages(tier, int64_t{1} << 60);  // more than any machine can address
      ADD_FAILURE() << "nothing was thrown";
    } catch (const CapacityError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(std::string(name_of(tier)) + " tier: need "), HasSubstr(", have "),
                                      HasSubstr(std::string(knob_of(tier))), testing::Not(HasSubstr("(0 bytes)"))));
    }
  }
}

TEST(Slab, RefusalTellsNumbersApartThatRoundToTheSame) {
  try {
    refuse_bytes(Tier::kDevice, (1 << 20) + kPage, 1 << 20, "the budget is 1 MiB");
  } catch (const CapacityError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("1,052,672 bytes"), HasSubstr("1,048,576 bytes"), HasSubstr("the budget is")));
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

}  // namespace
}  // namespace headrace::device
