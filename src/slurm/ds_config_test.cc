#include "slurm/ds_config.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

std::string check(std::string_view json, std::string_view arguments, std::optional<int> world) {
  const auto config = read_ds_config(json);
  if (!config) return "refused: " + config.error().message;
  std::vector<std::string> words;
  for (std::string& each : split(arguments, ' '))
    if (!each.empty()) words.push_back(std::move(each));
  std::string text;
  for (const DsProblem& each : check_ds_config(*config, read_ds_arguments(words, world)))
    text += each.what + "\n";
  return text;
}

TEST(DsConfig, BatchSizesFitTheRanks) {
  const char* all =
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2})";
  EXPECT_EQ(check(all, "", 8), "");
  EXPECT_EQ(check(all, "", 4),
            "train_batch_size is 64, but 4 ranks x 4 per GPU x 2 accumulation steps make 32\n");
  EXPECT_EQ(check(all, "", std::nullopt), "");
  EXPECT_EQ(check(R"({"train_batch_size": 64})", "", 8), "");
  EXPECT_EQ(check(R"({"train_batch_size": 60})", "", 8),
            "train_batch_size is 60, but 8 ranks make 8, which does not divide 60\n");
  EXPECT_EQ(check(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 3})", "", 8),
            "train_batch_size is 64, but 8 ranks x 3 per GPU make 24, which does not divide 64\n");
  EXPECT_EQ(check(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto"})",
                  "--per_device_train_batch_size 4 --gradient_accumulation_steps=1", 8),
            "train_batch_size is 64, but 8 ranks x 4 per GPU x 1 accumulation steps make 32\n");
  EXPECT_EQ(check(R"({"train_batch_size": 0})", "", 8), "train_batch_size is 0\n");
  EXPECT_EQ(check(R"({"train_micro_batch_size_per_gpu": 1.5})", "", 8),
            "train_micro_batch_size_per_gpu is 1.5\n");
  EXPECT_EQ(check(R"({"train_batch_size": 1e300})", "", 8), "train_batch_size is 1e+300\n");
}

TEST(DsConfig, ValuesAgreeWithTheCommandLine) {
  EXPECT_EQ(check(R"({"optimizer": {"params": {"lr": 1e-5}}})", "--learning_rate 0.00001", 1), "");
  EXPECT_EQ(check(R"({"optimizer": {"params": {"lr": 1e-4}}})", "--learning_rate 1e-5", 1),
            "optimizer.params.lr is 0.0001, but --learning_rate is 1e-05\n");
  EXPECT_EQ(check(R"({"fp16": {"enabled": true}})", "--fp16", 1), "");
  EXPECT_EQ(check(R"({"bf16": {"enabled": false}})", "--bf16", 1),
            "bf16.enabled is false, but --bf16 is given\n");
  EXPECT_EQ(check(R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})", "", 1),
            "fp16 and bf16 are both enabled\n");
  EXPECT_EQ(check(R"({"gradient_clipping": 1.0, "gradient_accumulation_steps": 2})",
                  "--max_grad_norm=0.5 --gradient_accumulation_steps 4", 1),
            "gradient_accumulation_steps is 2, but --gradient_accumulation_steps is 4\n"
            "gradient_clipping is 1, but --max_grad_norm is 0.5\n");
  EXPECT_EQ(check(R"({"zero_optimization": {"offload_param": {"device": "nvme"}}})", "", 1),
            "offload to NVMe has no nvme_path\n");
}

TEST(DsConfig, KnowsWhatTheTrainerFillsIn) {
  const char* text =
      "{\"a\": \"auto\",\n \"fp16\": {\"enabled\": \"auto\"},\n \"bf16\": {\n  \"enabled\": "
      "\"auto\"}}";
  const auto config = read_ds_config(text);
  EXPECT_EQ(join(config->auto_fields, " "), "a fp16.enabled bf16.enabled");
  EXPECT_EQ(line_of_field(text, "fp16.enabled"), 2);
  EXPECT_EQ(line_of_field(text, "bf16.enabled"), 4);
  EXPECT_EQ(line_of_field(text, "none"), 0);
}

TEST(DsConfig, RefusesWhatIsNoObject) {
  EXPECT_EQ(check("[1]", "", 1), "refused: it is not a JSON object");
  EXPECT_EQ(check("{\"a\": 1,}", "", 1), "refused: it is not a JSON object");
  EXPECT_EQ(
      check("{\"train_batch_size\": {}, \"zero_optimization\": 3, \"optimizer\": \"auto\"}", "", 1),
      "");
}

}  // namespace
}  // namespace lockstep::slurm
