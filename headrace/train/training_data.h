// From a run's settings to its data: what is trained, what is held out, and the loader that hands it out.
// Blocking; one thread, but for the loader's own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/config/train_config.h"
#include "headrace/data/batch_arithmetic.h"
#include "headrace/data/codec.h"
#include "headrace/data/evaluation.h"
#include "headrace/data/loader.h"

namespace headrace::train {

struct TrainingData {
  std::shared_ptr<const data::Corpus> corpus;
  std::shared_ptr<const data::Corpus> eval_corpus;  // the same as corpus when held_out splits it; null without either
  data::BatchSizes batch{};
  std::unique_ptr<data::Loader> loader;
  std::optional<data::Evaluation> evaluation;
};

// Reads and tokenises all files. `max_length` [tokens] has been limited to what the model can take.
// `restored`: where a run that goes on stands. Throws ConfigError, DataError or IoError.
TrainingData open_training_data(const config::TrainConfig& config, const data::Codec& codec, int64_t max_length,
                                const data::OnProgress& on_progress,
                                const std::optional<data::Position>& restored = std::nullopt);

// [tokens] the most that one micro-batch of `batch` sequences can hold.
int64_t largest_micro_batch(const data::Corpus& corpus, int64_t batch, int64_t max_length, const std::string& layout);

// Held-out data alone, for `headrace eval`.
struct EvaluationData {
  std::shared_ptr<const data::Corpus> corpus;
  data::Evaluation evaluation;
};
EvaluationData open_evaluation_data(const data::CorpusConfig& corpus, const data::Codec& codec, data::Layout layout,
                                    int64_t batch, const data::OnProgress& on_progress);

// The settings as the data room takes them. Throws ConfigError on a word it does not know.
data::CorpusConfig corpus_config(const config::CorpusSettings& settings, const std::vector<std::string>& files);

}  // namespace headrace::train
