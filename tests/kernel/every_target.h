// Runs a check once under each instruction set that this machine has and the kernels are built for.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace headrace::kernel {

template <class Body>
void for_every_target(const Body& body) {
  const auto supported = hwy::SupportedAndGeneratedTargets();
  ASSERT_GE(supported.size(), 1u);
  for (const auto target : supported) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace headrace::kernel
