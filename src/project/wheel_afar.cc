#include "project/wheel_afar.h"

#include "base/environment.h"
#include "base/id.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/command_run.h"
#include "io/file_system.h"
#include "io/loop.h"
#include "proc/spawn.h"
#include "project/installation.h"
#include "project/project.h"
#include "project/sync_tree.h"
#include "setup/node_ability.h"
#include "setup/places.h"
#include "setup/request.h"
#include "setup/tool.h"
#include "setup/wheel_plan.h"
#include "slurm/tools.h"
#include "slurm/wheel_step.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

namespace lockstep::project {
namespace {

using setup::BuiltWheel;
using setup::NodeAbility;
using setup::SayLine;
using setup::WheelRequest;

// Relative to the home there. Copies of sources are a cache: a later build sends only what has
// changed.
constexpr const char* kSources = ".cache/lockstep/wheel-sources/";

// Returns the arguments of `lockstep wheel` for the build. --json, because the answer is read by
// this program.
std::vector<std::string> wheel_words(const WheelRequest& request) {
  std::vector<std::string> words = {"wheel", "--json"};
  for (const auto& [name, value] :
       {std::pair{"--ops=", &request.ops}, std::pair{"--arch=", &request.arch},
        std::pair{"--isa=", &request.isa}, std::pair{"--python=", &request.python}})
    if (!value->empty()) words.push_back(name + *value);
  if (request.jobs > 0) words.push_back(fmt::format("--jobs={}", request.jobs));
  if (request.force) words.emplace_back("--force");
  words.push_back(request.source);
  return words;
}

// Returns whether the GPU architectures are open: neither --arch nor the variable of PyTorch's
// builds names any.
bool asks_for_archs(const WheelRequest& request) {
  return (request.arch.empty() || request.arch == "auto") &&
         env_text("TORCH_CUDA_ARCH_LIST").empty();
}

// Fills in settings that the user left open, so that the wheel fits all nodes. by_name: the
// architectures by Slurm's GPU types, if no node has answered.
void suit(WheelRequest& request, const std::vector<NodeAbility>& nodes, std::size_t wanted,
          const std::string& by_name, const SayLine& say) {
  const setup::CommonAbility common = setup::common_ability(nodes, wanted);
  const std::string arch = common.arch.empty() ? by_name : common.arch;
  if (request.isa.empty()) request.isa = common.isa;
  if (asks_for_archs(request) && !arch.empty()) request.arch = arch;
  std::string text = fmt::format("{} of {} nodes have answered", nodes.size(), wanted);
  if (!common.isa.empty()) text += ": their CPUs have " + common.isa + " in common";
  if (!arch.empty()) text += "; GPUs " + arch;
  say(text);
}

// Reads the answer of `lockstep wheel --json`. Passes other output on, because a build takes
// minutes and the user wants to see progress.
class Answer {
 public:
  explicit Answer(const SayLine& say) : say_(say) {}
  void line(std::string_view text) {
    constexpr std::string_view kOurs = "lockstep wheel: ";
    // The manifest is a single line of JSON. Progress lines begin with the program's name, which
    // the caller prints itself.
    if (text.starts_with('{'))
      manifest_ = codec::parse_ordered_json(text);
    else
      say_(text.starts_with(kOurs) ? text.substr(kOurs.size()) : text);
  }
  bool is_there() const { return manifest_.is_object() && manifest_.contains("path"); }
  const nlohmann::ordered_json& manifest() const { return manifest_; }

 private:
  const SayLine& say_;
  nlohmann::ordered_json manifest_;
};

class Job {
 public:
  Job(WheelRequest request, const std::vector<slurm::Setting>& settings, const SayLine& say)
      : request_(std::move(request)), settings_(settings), say_(say) {}

  Result<BuiltWheel> run() {
    srun_ = setup::find_program("srun");
    if (srun_.empty())
      return fail(Errc::not_found, "srun is missing: this machine must be a Slurm login node",
                  "build on a login node, or give --on CLUSTER");
    LOCKSTEP_TRY_ASSIGN(const std::string told,
                        slurm::ask_tool(slurm::run_here, slurm::sinfo_command(), "the nodes"));
    nodes_ = slurm::wheel_nodes(settings_, slurm::parse_sinfo(told));
    if (nodes_.nodes == 0)
      return fail(Errc::invalid_input, "no suitable node for the build is in service",
                  "name a partition with --partition; sinfo lists all partitions");
    LOCKSTEP_TRY_ASSIGN(binary_.path, proc::own_executable());
    // Nodes cannot see a file on a local disk of this machine, so srun copies the binary. The
    // random name keeps other users from preparing a file or folder there.
    if (io::is_local(binary_.path)) binary_.carry = "/tmp/lockstep-wheel-" + random_suffix(8);
    // Asking takes a job of its own, so ask only if the answer matters.
    if (request_.isa.empty() || asks_for_archs(request_)) LOCKSTEP_TRY(ask());
    return build();
  }

 private:
  Result<setup::ToolEnding> call(std::vector<std::string> argv,
                                 const std::function<void(std::string_view)>& line) const {
    argv.front() = srun_;
    std::error_code trouble;
    setup::ToolCall call{.argv = std::move(argv),
                         .env = {},
                         .folder = std::filesystem::current_path(trouble).string()};
    if (!binary_.carry.empty())
      // By variables and not by options: every user can read options while the job waits. The
      // program on the node deletes the copy named in LOCKSTEP_CARRIED.
      call.env = {"SLURM_BCAST=" + binary_.carry, "LOCKSTEP_CARRIED=" + binary_.carry};
    return setup::run_tool(call, line);
  }

  // Asks idle nodes for their abilities. Without an answer the build goes on with the usual
  // settings.
  Status ask() {
    std::vector<NodeAbility> abilities;
    std::string why = "none is idle";
    // srun waits a few seconds only. If so many nodes are not free, ask fewer nodes.
    for (const int count : slurm::ask_counts(nodes_)) {
      LOCKSTEP_TRY_ASSIGN(const auto ended, call(slurm::ask_step(settings_, count, binary_),
                                                 [&](std::string_view line) {
                                                   if (auto one = setup::ability_from(line))
                                                     abilities.push_back(std::move(*one));
                                                 }));
      if (!abilities.empty()) break;
      why = printable(setup::telling_line(ended.tail));
    }
    if (abilities.empty()) say_("warning: no node could be asked now: " + why);
    // Without answers, the architectures come from the types of the GPUs, so unknown types matter.
    if (nodes_.arch.empty() && !nodes_.unknown.empty())
      say_("warning: GPUs of these types are not known: " + join(nodes_.unknown, ", "));
    suit(request_, abilities, static_cast<std::size_t>(nodes_.nodes), nodes_.arch, say_);
    return {};
  }

  Result<BuiltWheel> build() {
    Answer answer(say_);
    LOCKSTEP_TRY_ASSIGN(const auto ended,
                        call(slurm::build_step(settings_, nodes_, binary_, wheel_words(request_)),
                             [&](std::string_view line) { answer.line(line); }));
    if (ended.code != 0 || !answer.is_there())
      return fail(Errc::unavailable,
                  fmt::format("the build job exited with code {}: {}", ended.code,
                              printable(setup::telling_line(ended.tail))));
    // The nodes and the login host share the home, so the wheel is in this cache already.
    return setup::seen_wheel(answer.manifest());
  }

  WheelRequest request_;
  const std::vector<slurm::Setting>& settings_;
  const SayLine& say_;
  std::string srun_;
  slurm::WheelNodes nodes_;
  slurm::StepBinary binary_;
};

hosts::CommandRequest request_to(const std::vector<hosts::HostPlace>& hosts,
                                 std::vector<std::string> argv) {
  hosts::CommandRequest request;
  request.hosts = hosts;
  request.argv = std::move(argv);
  request.own_binary = true;
  request.input = hosts::CommandRequest::Input::none;
  request.output = hosts::CommandRequest::Output::keep_out;
  return request;
}

// Sends the source if it is a folder of this machine, and makes the copy the source of the request.
// Indexes and URLs are fetched by the builder itself.
Status send_source(const hosts::HostPlace& host, WheelRequest& request, const SayLine& say,
                   const hosts::RunCommand& run_command) {
  LOCKSTEP_TRY_ASSIGN(const auto source, setup::read_wheel_source(request.source));
  if (source.kind != setup::WheelSource::Kind::folder) return {};
  LOCKSTEP_TRY_ASSIGN(const Project project, find_project(".", source.place));
  // Each folder of each machine has its own place, because no option of `wheel` could name another
  // place after a conflict.
  SyncOptions options{.destination = kSources + setup::key_of(installation_id() + project.root) +
                                     "/" + project.name};
  options.remark = [&](const std::string& text) { say("warning: " + text); };
  options.run_command = run_command;
  LOCKSTEP_TRY_ASSIGN(const auto report, sync_project({host}, project, options));
  const HostSync& sync = report.hosts.at(0);
  if (!sync.error.empty()) return fail(Errc::unavailable, sync.error, sync.hint);
  request.source = (source.name.empty() ? "" : source.name + "@") + sync.place;
  return {};
}

// A host that is not reached gives no ability. common_ability() counts the missing answers.
Status ask_hosts(const std::vector<hosts::HostPlace>& hosts, WheelRequest& request,
                 const SayLine& say, const hosts::RunCommand& run_command) {
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto endings, run_command(loop, request_to(hosts, {"host-ability"})));
  std::vector<NodeAbility> abilities;
  for (const hosts::HostEnding& each : endings) {
    if (!each.error.empty()) say("warning: " + each.error);
    for (const std::string& line : split(each.out, '\n'))
      if (auto one = setup::ability_from(line)) abilities.push_back(std::move(*one));
  }
  suit(request, abilities, hosts.size(), "", say);
  return {};
}

// Returns the error of a host where a program failed. An error of the link names the host and the
// reason. A program that failed there has printed its reason itself.
Failure failure_of(const hosts::HostEnding& ending, std::string_view what,
                   const hosts::HostPlace& host) {
  if (!ending.error.empty())
    return fail(Errc::unavailable, fmt::format("{}: {}", what, ending.error));
  return fail(Errc::unavailable, fmt::format("{} on {}", what, host.name), "its output is above");
}

// Builds there, and returns the wheel's manifest.
Result<nlohmann::ordered_json> build_there(const hosts::HostPlace& host,
                                           std::vector<std::string> words, const SayLine& say,
                                           const hosts::RunCommand& run_command) {
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto built, run_command(loop, request_to({host}, std::move(words))));
  Answer answer(say);
  for (const std::string& line : split(built.at(0).out, '\n'))
    if (!line.empty()) answer.line(line);
  if (built.at(0).code != 0 || !answer.is_there())
    return failure_of(built.at(0), "cannot build the wheel", host);
  return answer.manifest();
}

// Returns the bytes of the wheel. `cat` sends them over stdout, which is kept in memory.
Result<std::string> fetch_wheel(const hosts::HostPlace& host, const std::string& path,
                                const hosts::RunCommand& run_command) {
  hosts::CommandRequest request = request_to({host}, {"cat", path});
  request.own_binary = false;
  request.most_kept = setup::kLargestWheel;
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(auto fetched, run_command(loop, request));
  if (fetched.at(0).code != 0) return failure_of(fetched.at(0), "cannot fetch the wheel", host);
  return std::move(fetched.at(0).out);
}

}  // namespace

Result<BuiltWheel> build_wheel_in_job(const WheelRequest& request,
                                      const std::vector<slurm::Setting>& settings,
                                      const SayLine& say) {
  return Job(request, settings, say).run();
}

Result<BuiltWheel> build_wheel_on(const WheelHosts& where, const WheelRequest& given,
                                  const SayLine& say, const hosts::RunCommand& run_command) {
  WheelRequest request = given;
  const hosts::HostPlace& host = where.hosts.at(0);
  // On a login host, `wheel --slurm` asks the nodes: the CPU of the login host says nothing about
  // the nodes.
  if (!where.is_login && (request.isa.empty() || asks_for_archs(request)))
    LOCKSTEP_TRY(ask_hosts(where.hosts, request, say, run_command));
  LOCKSTEP_TRY(send_source(host, request, say, run_command));
  std::vector<std::string> words = wheel_words(request);
  if (where.is_login) words.emplace_back("--slurm");
  for (const slurm::Setting& each : where.settings)
    words.push_back(slurm::word_of(each));
  LOCKSTEP_TRY_ASSIGN(auto manifest, build_there(host, std::move(words), say, run_command));
  LOCKSTEP_TRY_ASSIGN(
      const std::string wheel,
      fetch_wheel(host, codec::text_member(nlohmann::json(manifest), "path"), run_command));
  // The host is not trusted: keep_foreign_wheel() checks the names and the digest.
  return setup::keep_foreign_wheel(std::move(manifest), wheel, host.name);
}

}  // namespace lockstep::project
