#include "headrace/cli/exit_code.h"

#include <c10/util/Exception.h>

#include <cerrno>
#include <new>

#include "headrace/base/errors.h"

namespace headrace::cli {
namespace {

// Paths that are not there or not ours to read are the caller's; a full or failing disk is not.
bool is_bad_path(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR || error_number == EISDIR || error_number == EACCES ||
         error_number == EINVAL || error_number == EFBIG;
}

}  // namespace

Failure failure_of_current_exception() {
  try {
    throw;
  } catch (const ConfigError& error) {
    return {kWrongUse, error.what()};
  } catch (const DataError& error) {
    return {kWrongUse, error.what()};
  } catch (const CapacityError& error) {
    return {kWrongUse, error.what()};
  } catch (const IoError& error) {
    return {is_bad_path(error.error_number()) ? kWrongUse : kFailed, error.what()};
  } catch (const c10::OutOfMemoryError& error) {
    return {kWrongUse, "the GPU is full: " + error.msg() +
                           " Raise --device-budget, lower --batch or --max-length, or add --recompute."};
  } catch (const std::bad_alloc&) {
    return {kFailed, "out of memory. Lower --batch or --max-length, or add --recompute."};
  } catch (const std::exception& error) {
    return {kFailed, error.what()};
  } catch (...) {
    return {kFailed, "an unknown error."};
  }
}

}  // namespace headrace::cli
