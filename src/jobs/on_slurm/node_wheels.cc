#include "jobs/on_slurm/node_wheels.h"

#include "base/clock_ms.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/nodelist.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/loop.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "io/resolve.h"
#include "jobs/on_slurm/job_wheels.h"
#include "jobs/on_slurm/wheel_records.h"
#include "peer/relay.h"
#include "setup/overlay.h"
#include "setup/toolchain_probe.h"
#include "slurm/job_run.h"
#include "slurm/tools.h"
#include "slurm/verdict.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

constexpr std::size_t kPiece = 1UL << 20;
// How long to wait for the first nodes to record whether they can train. Agents without that
// knowledge wait for the first node themselves.
constexpr std::chrono::seconds kLongestWait{60};

int number_in(const std::string& text) {
  return static_cast<int>(parse_int(text).value_or(0));
}

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

// Returns four ports that differ between the jobs on a node. They lie below the kernel's ephemeral
// ports and apart from the agents' own.
std::vector<int> ports_of(int job, int step) {
  constexpr int kFirst = 11000;
  constexpr int kPorts = 8999;  // a prime
  std::vector<int> ports(4);
  for (int i = 0; i < 4; ++i)
    ports[static_cast<std::size_t>(i)] =
        kFirst + (job % kPorts + step % kPorts * 4001 + i * 2503) % kPorts;
  return ports;
}

// Returns the addresses of a host name or a numeric address; empty: not known.
std::vector<std::string> addresses_of(const std::string& host, std::chrono::milliseconds patience) {
  std::vector<std::string> addresses;
  io::Loop loop;
  io::Timer limit(loop);
  const io::Lookup lookup(loop, host, 0, [&](const Result<io::Resolved>& found) {
    if (found)
      for (const io::Address& each : found->addresses)
        if (addresses.size() < 16) addresses.push_back(io::address_text(each));
    loop.stop();
  });
  limit.start(patience, [&] { loop.stop(); });
  loop.run();
  return addresses;
}

class Node {
 public:
  Node(const slurm::JobFolder& folder, JobWheels wheels, const std::vector<std::string>& left_out,
       const WheelStep& step)
      : folder_(folder),
        step_(step),
        wheels_(std::move(wheels)),
        left_out_(left_out),
        overlays_(wheels_.wheels.size()) {}
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Status run();
  NodeWheels result() const;
  // How each wheel was obtained, and in how many seconds.
  const ordered_json& rows() const { return rows_; }
  // All nodes of the step without those excluded by the pre-flight.
  const std::vector<std::string>& nodes() const { return nodes_; }

 private:
  // A wheel of which this node has no overlay yet.
  struct Want {
    std::size_t wheel;
    setup::OverlayRequest request;
    std::string from = {};
    double seconds = 0;
  };

  Status prepare();
  std::vector<Want> wants();
  Status open_relay(const std::vector<Want>& wants);
  Status get(Want& want);
  Status take_from_node(const Want& want, const std::string& name, std::uint64_t& come);
  Status copy_rest(const Want& want, std::uint64_t from);
  Status put(const Want& want);
  bool is_first() const { return node_ == 0 || nodes_.size() < 2; }
  std::string kept(std::size_t wheel) const {
    return folder_.at(kWheelsFolder) + ("/" + wheels_.wheels[wheel].file);
  }
  std::string giver_name() const {
    return nodes_.at(static_cast<std::size_t>(peer::relay_giver(node_)));
  }
  Status open_taker();
  void say_done();

  const slurm::JobFolder& folder_;
  const WheelStep& step_;
  const JobWheels wheels_;
  const std::vector<std::string>& left_out_;
  ordered_json rows_ = ordered_json::array();
  std::string place_;  // folder of the overlays
  std::string draft_;  // folder for incoming wheels
  std::string python_;
  std::vector<std::string> nodes_;
  int node_ = 0;
  std::string key_;
  std::vector<int> ports_;
  std::unique_ptr<peer::RelayGiver> giver_;
  std::optional<peer::RelayTaker> taker_;
  std::vector<std::optional<setup::Overlay>> overlays_;
};

Node::~Node() {
  // Other nodes may still fetch wheels from this node, even if this node failed.
  if (giver_) giver_->finish(step_.patience);
  std::error_code trouble;
  if (!draft_.empty()) fs::remove_all(draft_, trouble);
}

Status Node::prepare() {
  LOCKSTEP_TRY_ASSIGN(const std::string top, io::own_folder_in(wheels_.place, 0055));
  place_ = top + "/overlays";
  LOCKSTEP_TRY(io::make_folders(place_));
  draft_ = top + "/wheel-XXXXXX";
  if (mkdtemp(draft_.data()) == nullptr) return fail_sys("make " + draft_, errno);
  // The ranks' Python must import the wheels: PYTHON_EXEC, else the active environment.
  // Only this user can read the token, so processes of other users can neither give nor take
  // wheels.
  LOCKSTEP_TRY_ASSIGN(python_, setup::choose_python(step_.python));
  LOCKSTEP_TRY_ASSIGN(const std::string token, io::read_file(folder_.at("token")));
  key_ = io::digest_of("lockstep wheels " + token);
  if (auto nodes = codec::expand_nodelist(step_.nodes)) nodes_ = std::move(*nodes);
  node_ = leave_out(left_out_, step_.number, nodes_);
  ports_ = ports_of(number_in(step_.job), number_in(step_.step));
  return {};
}

std::vector<Node::Want> Node::wants() {
  std::vector<Want> wants;
  for (std::size_t i = 0; i < wheels_.wheels.size(); ++i) {
    const JobWheel& wheel = wheels_.wheels[i];
    Want want{.wheel = i,
              .request = {.wheel = is_first() ? kept(i) : draft_ + "/" + wheel.file,
                          .sha256 = wheel.sha256,
                          .python = python_,
                          .local = {},
                          .folder = place_}};
    overlays_[i] = step_.kept_overlay(want.request);
    if (!overlays_[i]) wants.push_back(std::move(want));
  }
  return wants;
}

// Offers wheels to the nodes behind this one. Wheels already imported on this node are given from
// the job's folder.
Status Node::open_relay(const std::vector<Want>& wants) {
  const int hosts = static_cast<int>(nodes_.size());
  const int takers = node_ < hosts ? peer::relay_takers(node_, hosts) : 0;
  if (takers > 0) {
    // Without a giver the other nodes read from the job's folder, which is only slower.
    auto giver = peer::RelayGiver::open(ports_, key_, takers, wheels_.wheels.size());
    if (giver)
      giver_ = std::move(*giver);
    else
      log::warning("this node cannot pass the job's wheels on to other nodes: {}",
                   giver.error().message);
  }
  for (std::size_t i = 0; i < wheels_.wheels.size(); ++i) {
    const bool comes =
        !is_first() &&
        std::any_of(wants.begin(), wants.end(), [&](const Want& each) { return each.wheel == i; });
    const std::string path = comes ? draft_ + "/" + wheels_.wheels[i].file : kept(i);
    if (comes) LOCKSTEP_TRY(io::write_file(path, ""));
    if (!giver_) continue;
    LOCKSTEP_TRY(giver_->begin(i, path));
    if (!comes) giver_->has(i, wheels_.wheels[i].bytes);
  }
  return {};
}

Status Node::open_taker() {
  const auto addresses = addresses_of(giver_name(), step_.patience);
  if (addresses.empty()) return fail(Errc::not_found, "the address is not known");
  LOCKSTEP_TRY_ASSIGN(auto taker, peer::RelayTaker::open(addresses, ports_, key_, step_.patience));
  taker_.emplace(std::move(taker));
  return {};
}

Status Node::take_from_node(const Want& want, const std::string& name, std::uint64_t& come) {
  if (!taker_) LOCKSTEP_TRY(open_taker());
  const io::Fd to(open(want.request.wheel.c_str(), O_WRONLY | O_CLOEXEC));
  if (!to) return fail_sys("write " + want.request.wheel, errno);
  return taker_->take(want.wheel, wheels_.wheels[want.wheel].bytes,
                      [&](std::string_view piece) -> Status {
                        LOCKSTEP_TRY(io::write_all(to.get(), piece, name));
                        come += piece.size();
                        if (giver_) giver_->has(want.wheel, come);
                        return {};
                      });
}

Status Node::get(Want& want) {
  want.from = "the job's folder";
  if (is_first()) return {};
  const auto began = Clock::now();
  const std::string name = giver_name();
  std::uint64_t come = 0;
  if (const Status taken = take_from_node(want, name, come)) {
    want.from = name;
  } else {
    // The connection may be in the middle of a wheel, so the next wheel needs a new connection.
    taker_.reset();
    log::warning("{} does not come from {} ({}): reading the wheel from the job's folder",
                 wheels_.wheels[want.wheel].file, name, printable(taken.error().message));
    // Continue behind the received bytes. make_overlay() compares the whole wheel's SHA-256 later.
    LOCKSTEP_TRY(copy_rest(want, come));
  }
  want.seconds = seconds_since(began);
  return {};
}

Status Node::copy_rest(const Want& want, std::uint64_t from) {
  const io::Fd in(open(kept(want.wheel).c_str(), O_RDONLY | O_CLOEXEC));
  const io::Fd to(open(want.request.wheel.c_str(), O_WRONLY | O_CLOEXEC));
  if (!in) return fail_sys("read " + kept(want.wheel), errno);
  if (!to || lseek(to.get(), static_cast<off_t>(from), SEEK_SET) < 0)
    return fail_sys("write " + want.request.wheel, errno);
  std::string bytes(kPiece, '\0');
  for (;;) {
    const ssize_t got = pread(in.get(), bytes.data(), bytes.size(), static_cast<off_t>(from));
    if (got < 0) return fail_sys("read " + kept(want.wheel), errno);
    if (got == 0) return {};
    const auto size = static_cast<std::size_t>(got);
    LOCKSTEP_TRY(io::write_all(to.get(), {bytes.data(), size}, want.request.wheel));
    from += size;
    if (giver_) giver_->has(want.wheel, from);
  }
}

// Report even if this node needs nothing: the giving node waits for all its takers.
void Node::say_done() {
  if (is_first() || static_cast<std::size_t>(node_) >= nodes_.size()) return;
  if (!taker_ && !open_taker()) return;
  taker_->finish();
  taker_.reset();
}

Status Node::put(const Want& want) {
  const auto began = Clock::now();
  setup::OverlayRequest request = want.request;
  for (const auto& each : overlays_)
    if (each) request.local.push_back(each->path);
  for (const std::string& each : split(step_.path, ':'))
    if (!each.empty()) request.local.push_back(each);
  LOCKSTEP_TRY_ASSIGN(overlays_[want.wheel], step_.make_overlay(request));
  const JobWheel& wheel = wheels_.wheels[want.wheel];
  rows_.push_back({{"wheel", wheel.file},
                   {"from", want.from},
                   {"bytes", wheel.bytes},
                   {"get_s", want.seconds},
                   {"import_s", seconds_since(began)}});
  return {};
}

Status Node::run() {
  LOCKSTEP_TRY(prepare());
  std::vector<Want> missing = wants();
  LOCKSTEP_TRY(open_relay(missing));
  for (Want& each : missing)
    LOCKSTEP_TRY(get(each));
  say_done();
  for (const Want& each : missing)
    LOCKSTEP_TRY(put(each));
  return {};
}

NodeWheels Node::result() const {
  NodeWheels wheels;
  for (const auto& each : overlays_) {
    if (!each) continue;
    wheels.paths.push_back(each->path);
    wheels.modules.insert(wheels.modules.end(), each->imported.begin(), each->imported.end());
  }
  return wheels;
}

// Writes a report in the place of the agent's, for the batch step and `lockstep why`.
void report(const slurm::JobFolder& folder, int run, const ordered_json& report) {
  const std::string path = folder.report(run, report["node"].get<std::string>());
  if (const Status kept = io::replace_file(path, codec::print_json(report)); !kept)
    log::error("{}", kept.error().message);
}

// Ends the job: the other agents would wait for this node in vain.
void end_job(const slurm::JobFolder& folder, int run, const WheelStep& step,
             const std::string& why) {
  report(folder, run,
         {{"node", step.node},
          {"outcome", "failed"},
          {"root_cause",
           {{"exit_code", 1}, {"host", step.node}, {"time_ms", unix_ms()}, {"message", why}}}});
  // Other rows of a sweep go on.
  const std::string job = folder.is_in_row() ? slurm::number_of_job(folder) : step.job;
  const auto told = step.run({"scancel", "--signal=TERM", job});
  if (!told) log::error("{}", told.error().message);
}

}  // namespace

int leave_out(const std::vector<std::string>& names, int self, std::vector<std::string>& nodes) {
  int place = self;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (static_cast<int>(i) == self ||
        std::find(names.begin(), names.end(), nodes[i]) == names.end())
      continue;
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    if (static_cast<int>(i) < self) --place;
  }
  return place;
}

WheelStep this_step() {
  WheelStep step{.node = env_text("SLURMD_NODENAME"),
                 .number = number_in(env_text("SLURM_NODEID")),
                 .nodes = env_text("SLURM_STEP_NODELIST"),
                 .job = env_text("SLURM_JOB_ID"),
                 .step = env_text("SLURM_STEP_ID"),
                 .python = env_text("PYTHON_EXEC"),
                 .path = env_text("PYTHONPATH")};
  const std::string venv = env_text("VIRTUAL_ENV");
  if (step.python.empty()) step.python = venv.empty() ? "python3" : venv + "/bin/python3";
  return step;
}

Result<NodeWheels> put_node_wheels(const slurm::JobFolder& folder,
                                   const std::vector<std::string>& left_out,
                                   const WheelStep& step) {
  const auto text = io::read_file(folder.at(kWheelsFile));
  if (!text && text.error().sys == ENOENT) return NodeWheels();
  if (!text) return Failure(text.error());
  LOCKSTEP_TRY_ASSIGN(const JobWheels wheels, wheels_from_text(*text));
  const int run = slurm::run_number(folder);
  const WheelRecords records(folder, run, step.step);
  std::vector<std::string> nodes;
  signal(SIGPIPE, SIG_IGN);
  Status done;
  NodeWheels result;
  // Leave the block before the agent starts: ~Node waits for nodes that still take wheels.
  {
    Node node(folder, wheels, left_out, step);
    done = node.run();
    result = node.result();
    nodes = node.nodes();
    records.note(step.node, node.rows(), done);
  }
  // The agent starts next in this process and expects the default.
  signal(SIGPIPE, SIG_DFL);
  // Without spares a failed node ends the job, so the list is not needed.
  if (done && wheels.spare > 0) result.failed_first = records.failed_first(nodes, kLongestWait);
  if (done) return result;
  // More failures than the job has spare nodes end the job.
  if (records.failed() > wheels.spare)
    end_job(folder, run, step, done.error().message);
  else
    report(folder, run,
           {{"node", step.node},
            {"outcome", slurm::kLeftOut},
            {"reason", "left out: " + done.error().message}});
  return Failure(done.error());
}

}  // namespace lockstep::jobs::on_slurm
