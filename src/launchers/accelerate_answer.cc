#include "launchers/accelerate_answer.h"

#include "base/text.h"
#include "codec/json.h"
#include "codec/json_members.h"
#include "launchers/launcher_words.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

namespace lockstep::launchers {
namespace {

using Words = std::vector<std::string>;

// Returns a list of texts; nullopt: anything else, because another release of accelerate may answer
// differently.
std::optional<Words> words_at(const nlohmann::json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end() || !found->is_array()) return std::nullopt;
  Words words;
  for (const auto& word : *found) {
    if (!word.is_string()) return std::nullopt;
    words.push_back(word.get<std::string>());
  }
  return words;
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Returns a launch without torchrun's variables, as accelerate starts a single process. Scripts
// decide by RANK whether they are distributed, so RANK must be unset.
Launch simple_process() {
  Launch launch{.run = {"--no-python", "--", "env"}};
  for (const char* name :
       {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
        "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_SIGNALS_TO_HANDLE",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING"})
    launch.run.push_back(fmt::format("--unset={}", name));
  return launch;
}

Result<Launch> read_process(const Words& command, const Words& env,
                            std::span<const std::string> words, const ReadOptions& options) {
  const std::string_view program = command.empty() ? "" : last_part(command[0]);
  if (program == "deepspeed") return read_deepspeed(std::span(command).subspan(1), options);
  // mpirun starts the ranks itself, so Lockstep cannot.
  if (program.empty() || program == "mpirun")
    return accelerate_itself(words, "accelerate starts mpirun");
  Launch launch = simple_process();
  // The agent sets MASTER_* for every worker. As arguments of env, accelerate's values win.
  for (const std::string& variable : env)
    if (variable.starts_with("MASTER_")) launch.run.push_back(kept_literally(variable));
  append_literally(command, launch.run);
  return launch;
}

// Reads the words that accelerate would give to torchrun.
Result<Launch> read_torchruns(const nlohmann::json& answer, Words torchrun,
                              const ReadOptions& options) {
  torchrun.emplace_back("--");
  torchrun.push_back(codec::text_member(answer, "script"));
  const Words arguments = words_at(answer, "args").value_or(Words{});
  torchrun.insert(torchrun.end(), arguments.begin(), arguments.end());
  return read_torchrun(torchrun, options, false);
}

}  // namespace

Launch accelerate_itself(std::span<const std::string> words, std::string_view why) {
  Launch launch{.launcher = Launcher::accelerate,
                .run = {"--no-python", "--", "accelerate", "launch"}};
  append_literally(words, launch.run);
  launch.notes.push_back(
      fmt::format("accelerate launch runs by itself, in one process: {}", printable(why, 300)));
  return launch;
}

bool is_accelerate_itself(const Launch& launch) {
  return launch.launcher == Launcher::accelerate && launch.run.size() > 3 &&
         launch.run[0] == "--no-python" && launch.run[2] == "accelerate" &&
         launch.run[3] == "launch";
}

Result<Launch> read_accelerate_answer(std::string_view answer, std::span<const std::string> words,
                                      const ReadOptions& options) {
  const nlohmann::json json = codec::parse_json(answer);
  if (!json.is_object()) return accelerate_itself(words, "accelerate did not answer");
  // accelerate's own parser has printed the reason.
  if (json.contains("exit"))
    return fail(Errc::invalid_input, "accelerate launch refuses these words");
  if (const std::string error = codec::text_member(json, "error"); !error.empty())
    return accelerate_itself(words, error);
  const Words env = words_at(json, "env").value_or(Words{});
  const auto torchrun = words_at(json, "torchrun");
  const auto command = words_at(json, "command");
  if (!torchrun && !command) return accelerate_itself(words, "the answer is not understood");
  auto launch = torchrun ? read_torchruns(json, *torchrun, options)
                         : read_process(*command, env, words, options);
  if (!launch) return launch;
  launch->launcher = Launcher::accelerate;
  launch->env.insert(launch->env.end(), env.begin(), env.end());
  return launch;
}

}  // namespace lockstep::launchers
