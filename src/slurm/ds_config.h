// Reads DeepSpeed's configuration file and compares it with a job before submission. Pure.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// A number in the file, or "auto", which only Hugging Face's Trainer replaces.
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
  std::vector<std::string> auto_fields;  // paths like "fp16.enabled" in file order; at most 100
  std::vector<std::string> nvme_paths;   // nvme_path of each offload to NVMe; "" where missing
  bool offloads_to_nvme = false;
  bool offloads_optimizer = false;  // to the CPU or NVMe, which needs CPU_ADAM
  bool has_aio = false;             // the file has a block "aio"
};

// Parses the file. Errors: corrupt (not a JSON object, or too large).
Result<DsConfig> read_ds_config(std::string_view text);

// The same values on the training's command line; nullopt: not given.
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
// Reads the arguments of Hugging Face's TrainingArguments among `words`.
DsArguments read_ds_arguments(const std::vector<std::string>& words, std::optional<int> world_size);

struct DsProblem {
  std::string field;  // "train_batch_size"
  std::string what;
  std::string why;
  std::string fix;
};

// Returns what DeepSpeed or the Trainer would refuse: a train_batch_size that is not ranks x micro
// batch x accumulation, and values that differ from the command line.
std::vector<DsProblem> check_ds_config(const DsConfig& config, const DsArguments& arguments);

// Returns the line of "field" in a JSON text, searched by the last part of its path; 0: not found.
int line_of_field(std::string_view text, std::string_view field);

}  // namespace lockstep::slurm
