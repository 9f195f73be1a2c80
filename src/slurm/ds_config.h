// DeepSpeed's configuration file, as far as a job can be held against it before it is queued. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// A number in the file, or "auto", which Hugging Face's Trainer fills in and nobody else does.
struct DsNumber {
  std::optional<double> value;
  bool is_auto = false;
};

struct DsConfig {
  DsNumber train_batch_size;
  DsNumber micro_batch_size;  // train_micro_batch_size_per_gpu
  DsNumber accumulation;      // gradient_accumulation_steps
  DsNumber clipping;          // gradient_clipping
  DsNumber learning_rate;     // optimizer.params.lr
  DsNumber weight_decay;      // optimizer.params.weight_decay
  DsNumber warmup_steps;      // scheduler.params.warmup_num_steps
  std::optional<bool> fp16;   // nullopt: absent or "auto"
  std::optional<bool> bf16;
  int zero_stage = 0;
  std::vector<std::string> auto_fields;  // "fp16.enabled", in the file's order; at most 100
  std::vector<std::string> nvme_paths;   // of offload to NVMe; "" where it is missing
  bool offloads_to_nvme = false;
  bool offloads_optimizer = false;  // to the CPU or NVMe: CPU_ADAM is needed
  bool has_aio = false;             // the block "aio"
};

// corrupt: no JSON object, or too large.
Result<DsConfig> read_ds_config(std::string_view text);

// What the command line of a training says about the same values.
struct DsArguments {
  std::optional<int> world_size;
  std::optional<double> micro_batch_size;  // --per_device_train_batch_size
  std::optional<double> accumulation;      // --gradient_accumulation_steps
  std::optional<double> clipping;          // --max_grad_norm
  std::optional<double> learning_rate;     // --learning_rate
  std::optional<double> weight_decay;      // --weight_decay
  std::optional<double> warmup_steps;      // --warmup_steps
  std::optional<bool> fp16;
  std::optional<bool> bf16;
};
DsArguments read_ds_arguments(const std::vector<std::string>& words, std::optional<int> world_size);

struct DsProblem {
  std::string field;  // "train_batch_size"
  std::string what;
  std::string why;
  std::string fix;
};

// What DeepSpeed or the Trainer would refuse: train_batch_size against ranks x micro x
// accumulation, and values of the file that differ from the command line.
std::vector<DsProblem> check_ds_config(const DsConfig& config, const DsArguments& arguments);

// The line of "field" in a JSON text, by its last part; 0: not found.
int line_of_field(std::string_view text, std::string_view field);

}  // namespace lockstep::slurm
