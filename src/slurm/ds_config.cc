#include "slurm/ds_config.h"

#include "base/text.h"
#include "codec/json.h"
#include "slurm/job_script.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostAutoFields = 100;
// Larger than any real batch. Products of three factors stay exact in a double.
constexpr double kMostBatch = 1e5 * 1e9;

// Returns the value at a path like "fp16.enabled", or nullptr.
const nlohmann::ordered_json* member(const nlohmann::ordered_json& object, std::string_view path) {
  const nlohmann::ordered_json* at = &object;
  for (const std::string& name : split(path, '.')) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

DsNumber number(const nlohmann::ordered_json& object, std::string_view path) {
  const auto* found = member(object, path);
  if (found == nullptr) return {};
  if (found->is_number()) return {found->get<double>(), false};
  return {std::nullopt, found->is_string() && found->get_ref<const std::string&>() == "auto"};
}

std::optional<bool> enabled(const nlohmann::ordered_json& object, std::string_view path) {
  const auto* found = member(object, path);
  return found != nullptr && found->is_boolean() ? std::optional(found->get<bool>()) : std::nullopt;
}

// Collects the paths of all "auto" values.
void collect_auto(const nlohmann::ordered_json& value, const std::string& path,
                  std::vector<std::string>& fields) {
  if (!value.is_object()) return;
  for (const auto& [name, each] : value.items()) {
    if (fields.size() >= kMostAutoFields) return;
    std::string below = path.empty() ? name : fmt::format("{}.{}", path, name);
    if (each.is_string() && each.get_ref<const std::string&>() == "auto") {
      fields.push_back(std::move(below));
    } else {
      collect_auto(each, below, fields);
    }
  }
}

// Reads where optimizer state and parameters are offloaded to.
void read_offload(const nlohmann::ordered_json& json, DsConfig& config) {
  for (const std::string_view part : {"offload_optimizer", "offload_param"}) {
    const auto* offload = member(json, fmt::format("zero_optimization.{}", part));
    const auto* device = offload == nullptr ? nullptr : member(*offload, "device");
    if (device == nullptr || !device->is_string()) continue;
    const std::string name = device->get<std::string>();
    if (part == "offload_optimizer" && (name == "cpu" || name == "nvme"))
      config.offloads_optimizer = true;
    if (name != "nvme") continue;
    config.offloads_to_nvme = true;
    const auto* path = member(*offload, "nvme_path");
    config.nvme_paths.push_back(path != nullptr && path->is_string() ? path->get<std::string>()
                                                                     : "");
  }
}

// Prints 8 and 0.5, not 8.000000.
std::string shown(double value) {
  return fmt::format("{}", value);
}

std::optional<double> number_argument(const std::vector<std::string>& words,
                                      std::initializer_list<std::string_view> names) {
  const auto text = option_of(words, names);
  return text ? parse_float(*text) : std::nullopt;
}

// TrainingArguments accepts "--fp16" alone and "--fp16 false".
std::optional<bool> flag_argument(const std::vector<std::string>& words, std::string_view name) {
  const auto value = option_of(words, {name});
  if (!value) return std::nullopt;
  const std::string text = to_lower(*value);
  return !(text == "false" || text == "0" || text == "no");
}

// Compares with a tolerance: 1e-5 in the file equals 0.00001 on the command line.
bool is_same(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

// The Trainer compares every value in the file that is not "auto" with its arguments, and refuses a
// difference.
void compare(std::string_view field, const DsNumber& file, std::string_view option,
             const std::optional<double>& argument, std::vector<DsProblem>& problems) {
  if (!file.value || !argument || is_same(*file.value, *argument)) return;
  problems.push_back(
      {std::string(field),
       fmt::format("{} is {}, but {} is {}", field, shown(*file.value), option, shown(*argument)),
       "the Trainer refuses a file that disagrees with its arguments",
       fmt::format("write \"auto\" for {}", field)});
}

void compare(std::string_view field, const std::optional<bool>& file, std::string_view option,
             const std::optional<bool>& argument, std::vector<DsProblem>& problems) {
  if (!file || !argument || *file == *argument) return;
  problems.push_back(
      {std::string(field),
       fmt::format("{} is {}, but {} is {}", field, *file, option, *argument ? "given" : "off"),
       "the Trainer refuses a file that disagrees with its arguments",
       fmt::format("write \"auto\" for {}", field)});
}

bool is_count(const std::optional<double>& value) {
  return value && *value >= 1 && *value <= 1e5 && std::floor(*value) == *value;
}

// Checks train_batch_size = ranks x micro batch x accumulation. If one factor is unknown, the known
// product must at least divide the total.
void check_batch(const DsConfig& config, const DsArguments& arguments,
                 std::vector<DsProblem>& problems) {
  const auto bad = [&](std::string_view field, const DsNumber& value) {
    if (!value.value || is_count(value.value) ||
        (field == "train_batch_size" && *value.value >= 1 && *value.value < kMostBatch &&
         std::floor(*value.value) == *value.value))
      return false;
    problems.push_back({std::string(field), fmt::format("{} is {}", field, shown(*value.value)),
                        "the value must be a whole number above 0", "correct it"});
    return true;
  };
  bool any = bad("train_batch_size", config.train_batch_size);
  any = bad("train_micro_batch_size_per_gpu", config.micro_batch_size) || any;
  any = bad("gradient_accumulation_steps", config.accumulation) || any;
  const auto& total = config.train_batch_size.value;
  if (any || !total || !arguments.world_size || *arguments.world_size < 1) return;
  const int world = *arguments.world_size;
  const auto micro =
      config.micro_batch_size.value ? config.micro_batch_size.value : arguments.micro_batch_size;
  const auto steps = config.accumulation.value ? config.accumulation.value : arguments.accumulation;
  if ((micro && !is_count(micro)) || (steps && !is_count(steps))) return;
  const double known = world * micro.value_or(1) * steps.value_or(1);
  const bool fits = micro && steps ? is_same(known, *total) : std::fmod(*total, known) == 0;
  if (fits) return;
  std::string product = fmt::format("{} rank{}", world, world == 1 ? "" : "s");
  if (micro) product += fmt::format(" x {} per GPU", shown(*micro));
  if (steps) product += fmt::format(" x {} accumulation steps", shown(*steps));
  problems.push_back(
      {"train_batch_size",
       fmt::format("train_batch_size is {}, but {} make {}{}", shown(*total), product, shown(known),
                   micro && steps ? "" : ", which does not divide " + shown(*total)),
       "DeepSpeed ends at its start when they do not fit",
       micro && steps ? fmt::format("write {} or \"auto\"", shown(known))
                      : "write a multiple of it"});
}

}  // namespace

Result<DsConfig> read_ds_config(std::string_view text) {
  const auto json = codec::parse_ordered_json(text);
  if (!json.is_object())
    return fail(Errc::corrupt, "it is not a JSON object",
                "check it with python3 -m json.tool; JSON has no comments and no last comma");
  DsConfig config;
  config.train_batch_size = number(json, "train_batch_size");
  config.micro_batch_size = number(json, "train_micro_batch_size_per_gpu");
  config.accumulation = number(json, "gradient_accumulation_steps");
  config.clipping = number(json, "gradient_clipping");
  config.learning_rate = number(json, "optimizer.params.lr");
  config.weight_decay = number(json, "optimizer.params.weight_decay");
  config.warmup_steps = number(json, "scheduler.params.warmup_num_steps");
  config.fp16 = enabled(json, "fp16.enabled");
  config.bf16 = enabled(json, "bf16.enabled");
  const auto stage = number(json, "zero_optimization.stage").value.value_or(0);
  config.zero_stage = stage >= 0 && stage <= 3 ? static_cast<int>(stage) : 0;
  collect_auto(json, "", config.auto_fields);
  read_offload(json, config);
  config.has_aio = member(json, "aio") != nullptr;
  return config;
}

DsArguments read_ds_arguments(const std::vector<std::string>& words,
                              std::optional<int> world_size) {
  return {.world_size = world_size,
          .micro_batch_size = number_argument(words, {"--per_device_train_batch_size"}),
          .accumulation = number_argument(words, {"--gradient_accumulation_steps"}),
          .clipping = number_argument(words, {"--max_grad_norm"}),
          .learning_rate = number_argument(words, {"--learning_rate"}),
          .weight_decay = number_argument(words, {"--weight_decay"}),
          .warmup_steps = number_argument(words, {"--warmup_steps"}),
          .fp16 = flag_argument(words, "--fp16"),
          .bf16 = flag_argument(words, "--bf16")};
}

std::vector<DsProblem> check_ds_config(const DsConfig& config, const DsArguments& arguments) {
  std::vector<DsProblem> problems;
  check_batch(config, arguments, problems);
  compare("train_micro_batch_size_per_gpu", config.micro_batch_size,
          "--per_device_train_batch_size", arguments.micro_batch_size, problems);
  compare("gradient_accumulation_steps", config.accumulation, "--gradient_accumulation_steps",
          arguments.accumulation, problems);
  compare("gradient_clipping", config.clipping, "--max_grad_norm", arguments.clipping, problems);
  compare("optimizer.params.lr", config.learning_rate, "--learning_rate", arguments.learning_rate,
          problems);
  compare("optimizer.params.weight_decay", config.weight_decay, "--weight_decay",
          arguments.weight_decay, problems);
  compare("scheduler.params.warmup_num_steps", config.warmup_steps, "--warmup_steps",
          arguments.warmup_steps, problems);
  compare("fp16.enabled", config.fp16, "--fp16", arguments.fp16, problems);
  compare("bf16.enabled", config.bf16, "--bf16", arguments.bf16, problems);
  if (config.fp16.value_or(false) && config.bf16.value_or(false))
    problems.push_back({"bf16.enabled", "fp16 and bf16 are both enabled",
                        "DeepSpeed takes one precision", "switch one off"});
  for (const std::string& path : config.nvme_paths)
    if (path.empty())
      problems.push_back({"device", "offload to NVMe has no nvme_path",
                          "DeepSpeed writes to /local_nvme, or ends",
                          "add \"nvme_path\" with a folder on each node's own disk"});
  return problems;
}

int line_of_field(std::string_view text, std::string_view field) {
  const std::string quoted = fmt::format("\"{}\"", field.substr(field.rfind('.') + 1));
  // "enabled" occurs in several blocks: search below the parent's name.
  std::size_t from = 0;
  if (const std::size_t dot = field.find('.'); dot != std::string_view::npos) {
    const std::size_t parent = text.find(fmt::format("\"{}\"", field.substr(0, dot)));
    if (parent != std::string_view::npos) from = parent;
  }
  const std::size_t at = text.find(quoted, from);
  if (at == std::string_view::npos) return 0;
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace lockstep::slurm
