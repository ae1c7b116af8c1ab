// A training on disk: one .safetensors file.
//
//     <parameter name>, adam.first.<name>, adam.second.<name>     tensors in the run's precision
//     metadata: heedful (format), options (JSON), step, loss, random (the stream's state);
//               of text also best: the step and loss of the best score so far; hash, of all of these and the tensors
//
// Writing goes to a temporary file that replaces the old one once it is safely on disk; the old one stays beside it
// as <file>.previous. Only the arrays named by the model's own inventory are accepted.
#ifndef HEEDFUL_TRAINING_CHECKPOINT_H_
#define HEEDFUL_TRAINING_CHECKPOINT_H_

#include <filesystem>
#include <string>

#include "heedful/formats/safetensors.h"
#include "heedful/training/trainer.h"

namespace heedful {

template <class T>
void save_checkpoint(const std::filesystem::path& path, const TrainingState<T>& state);

// Throws Error where the file is missing, truncated, damaged, not a checkpoint of ours, or of another precision than T.
template <class T>
TrainingState<T> load_checkpoint(const std::filesystem::path& path);

// The options a checkpoint was trained with, its precision among them.
TrainOptions load_checkpoint_options(const std::filesystem::path& path);

// What a checkpoint with these contents names as its hash. A single byte that changed always changes it.
std::string checkpoint_hash(const Safetensors& contents);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_CHECKPOINT_H_
