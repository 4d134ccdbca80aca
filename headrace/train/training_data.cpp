#include "headrace/train/training_data.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "headrace/data/split.h"

namespace headrace::train {
namespace {

std::optional<int64_t> unless_zero(int64_t value) { return value == 0 ? std::nullopt : std::optional<int64_t>(value); }

data::OrderConfig order_config(const config::TrainConfig& config, int64_t max_length) {
  data::OrderConfig order;
  order.seed = static_cast<uint64_t>(config.seed);
  order.layout = data::parse_layout(config.layout);
  order.max_length = max_length;
  return order;
}

}  // namespace

data::CorpusConfig corpus_config(const config::CorpusSettings& settings, const std::vector<std::string>& files) {
  data::CorpusConfig corpus;
  corpus.files = files;
  corpus.format = data::parse_format(settings.data_format);
  corpus.loss_on = data::parse_loss_on(settings.loss_on);
  corpus.over_long = data::parse_over_long(settings.over_long);
  corpus.text_documents = data::parse_text_documents(settings.text_documents);
  corpus.max_length = settings.max_length;
  corpus.skip_bad_lines = settings.skip_bad_lines;
  return corpus;
}

int64_t largest_micro_batch(const data::Corpus& corpus, int64_t batch, int64_t max_length, const std::string& layout) {
  if (data::parse_layout(layout) != data::Layout::documents) return batch * max_length;
  std::vector<int64_t> lengths;  // of sequences; a text longer than max_length gives several
  for (const data::Corpus::Document& document : corpus.documents()) {
    const int64_t pieces = std::min(batch, (document.length() + max_length - 1) / max_length);
    for (int64_t i = 0; i < pieces; ++i) lengths.push_back(std::min(document.length() - i * max_length, max_length));
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(static_cast<size_t>(batch), lengths.size()));
  std::partial_sort(lengths.begin(), lengths.begin() + count, lengths.end(), std::greater<>());
  return std::accumulate(lengths.begin(), lengths.begin() + count, int64_t{0});
}

EvaluationData open_evaluation_data(const data::CorpusConfig& corpus_settings, const data::Codec& codec,
                                    data::Layout layout, int64_t batch, const data::OnProgress& on_progress) {
  std::shared_ptr<const data::Corpus> corpus = data::load_corpus(corpus_settings, codec, on_progress);
  data::OrderConfig order;
  order.shuffle = false;
  order.layout = layout;
  order.max_length = corpus_settings.max_length;
  return {corpus, data::Evaluation(corpus, data::all_of(*corpus), order, batch)};
}

TrainingData open_training_data(const config::TrainConfig& config, const data::Codec& codec, int64_t max_length,
                                const data::OnProgress& on_progress, const std::optional<data::Position>& restored) {
  TrainingData result;
  result.batch = data::resolve_batch(
      {unless_zero(config.global_batch), config.batch, unless_zero(config.accumulate), /*ranks=*/1});
  const data::OrderConfig order = order_config(config, max_length);
  data::CorpusConfig trained = corpus_config(config, config.data);
  trained.max_length = max_length;
  trained.group_field = config.group_field;
  result.corpus = data::load_corpus(trained, codec, on_progress);
  data::Split split{data::all_of(*result.corpus), {}};
  if (config.held_out > 0) {
    split = data::split_corpus(*result.corpus, {.fraction = config.held_out, .seed = order.seed});
    result.eval_corpus = result.corpus;
    result.evaluation.emplace(result.corpus, std::move(split.held_out), order, result.batch.micro_batch);
  } else if (!config.eval_data.empty()) {
    data::CorpusConfig scored = corpus_config(config, config.eval_data);
    scored.max_length = max_length;
    EvaluationData held_out = open_evaluation_data(scored, codec, order.layout, result.batch.micro_batch, on_progress);
    result.eval_corpus = std::move(held_out.corpus);
    result.evaluation.emplace(std::move(held_out.evaluation));
  }
  data::LoaderConfig loader;
  loader.order = order;
  loader.batch = result.batch.micro_batch;
  loader.accumulate = result.batch.accumulate;
  loader.max_steps = config.steps;
  loader.max_epochs = config.steps > 0 ? 0 : config.epochs;
  result.loader = std::make_unique<data::Loader>(result.corpus, std::move(split.train), loader, restored);
  return result;
}

}  // namespace headrace::train
