// Stands in for headrace/kernel/cuda/ in a build without CUDA. Nobody calls it there: such a build opens no GPU.
#include <string>

#include "headrace/base/errors.h"
#include "headrace/kernel/cuda/adamw.h"
#include "headrace/kernel/cuda/adamw_channels.h"
#include "headrace/kernel/cuda/channels.h"

namespace headrace::kernel::cuda {
namespace {

[[noreturn]] void refuse() { throw DeviceError("kernel.cuda", "this program was built without CUDA."); }

}  // namespace

void adamw_update(const AdamWBuffers&, std::span<const DecayRange>, const AdamWStep&, CUstream_st*) { refuse(); }

void adamw_update_channels(const DeviceState&, const MatrixShape&, Lines, const DeviceStep&, CUstream_st*) { refuse(); }
void adamw_update_selected(const DeviceState&, const int32_t*, const MatrixShape&, Lines, const DeviceStep&,
                           CUstream_st*) {
  refuse();
}
void accumulate_gradient(float*, int64_t, const DeviceSlot&, bool, CUstream_st*) { refuse(); }

void gather_channels(const float*, const MatrixShape&, const ChannelList&, Lines, float*, CUstream_st*) { refuse(); }
void scatter_channels(const float*, const MatrixShape&, const ChannelList&, Lines, float*, CUstream_st*) { refuse(); }
int64_t score_workspace(const MatrixShape&, Lines) { refuse(); }
void add_channel_scores(const float*, const MatrixShape&, Lines, const ScoreBuffers&, CUstream_st*) { refuse(); }
std::vector<int32_t> column_places(std::span<const int32_t>, std::span<const int32_t>, const MatrixShape&) { refuse(); }
void split_columns(const float*, const MatrixShape&, Lines, const ColumnSides&, const ScoreBuffers&, CUstream_st*) {
  refuse();
}

}  // namespace headrace::kernel::cuda
