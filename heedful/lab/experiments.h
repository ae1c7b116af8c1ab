// The experiments, one a file of the same name.
#ifndef HEEDFUL_LAB_EXPERIMENTS_H_
#define HEEDFUL_LAB_EXPERIMENTS_H_

#include "heedful/lab/lab.h"

namespace heedful {

void run_attention(Report& report, const Lab& lab);
void run_masks(Report& report, const Lab& lab);
void run_scaling(Report& report, const Lab& lab);
void run_heads(Report& report, const Lab& lab);
void run_parameters(Report& report, const Lab& lab);
void run_gradients(Report& report, const Lab& lab);
void run_exercises(Report& report, const Lab& lab);
void run_positions(Report& report, const Lab& lab);
void run_quadratic(Report& report, const Lab& lab);
void run_cache(Report& report, const Lab& lab);
void run_tasks(Report& report, const Lab& lab);
void run_ablations(Report& report, const Lab& lab);
void run_order(Report& report, const Lab& lab);
void run_map(Report& report, const Lab& lab);
void run_intervention(Report& report, const Lab& lab);
void run_traps(Report& report, const Lab& lab);
void run_text(Report& report, const Lab& lab);

}  // namespace heedful

#endif  // HEEDFUL_LAB_EXPERIMENTS_H_
