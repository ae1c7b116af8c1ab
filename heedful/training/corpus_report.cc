#include "heedful/training/corpus_report.h"

#include <utility>

namespace heedful {

CorpusReport report_on(const Corpus& corpus) {
  CorpusReport report;
  for (const Index length : kOverlapLengths) report.grams.push_back({length, gram_overlap(corpus, length)});
  report.lines = line_overlap(corpus);
  const Index vocabulary = corpus.tokenizer.vocabulary();
  for (const auto& [name, order] : {std::pair{"unigram", 1}, {"bigram", 2}, {"five_gram", 5}}) {
    report.baselines.push_back({name, score(corpus, NGram(corpus.training(), order, vocabulary))});
  }
  return report;
}

}  // namespace heedful
