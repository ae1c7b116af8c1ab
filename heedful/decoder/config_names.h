// The names of the config's choices, as they stand in files and on the command line.
#ifndef HEEDFUL_DECODER_CONFIG_NAMES_H_
#define HEEDFUL_DECODER_CONFIG_NAMES_H_

#include "heedful/core/enum_names.h"
#include "heedful/decoder/config.h"

namespace heedful {

inline constexpr EnumName<Norm> kNormNames[] = {{Norm::layer, "layer"}, {Norm::rms, "rms"}};
inline constexpr EnumName<NormPlacement> kNormPlacementNames[] = {{NormPlacement::pre, "pre"},
                                                                  {NormPlacement::post, "post"}};
inline constexpr EnumName<Position> kPositionNames[] = {{Position::learned, "learned"},
                                                        {Position::sinusoidal, "sinusoidal"},
                                                        {Position::rotary, "rotary"},
                                                        {Position::alibi, "alibi"},
                                                        {Position::none, "none"}};
inline constexpr EnumName<RotaryLayout> kRotaryLayoutNames[] = {{RotaryLayout::interleaved, "interleaved"},
                                                                {RotaryLayout::half_split, "half_split"}};
inline constexpr EnumName<FeedForward> kFeedForwardNames[] = {{FeedForward::relu, "relu"},
                                                              {FeedForward::gelu, "gelu"},
                                                              {FeedForward::gelu_tanh, "gelu_tanh"},
                                                              {FeedForward::swiglu, "swiglu"}};

}  // namespace heedful

#endif  // HEEDFUL_DECODER_CONFIG_NAMES_H_
