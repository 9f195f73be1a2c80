// Measures many agents of the c10d rendezvous, without workers, in several processes, against one
// host on loopback. Prints one JSON line.
//   c10d_sim [--agents N] [--processes P] [--seconds S] [--fail] [--calm]
// The host has a process of its own, so that its processor time can be measured. Times are from the
// release of the agents (all started, none connected) until the last of them has its ranks; with
// --fail also from the failure of one agent's worker until all have the ranks of the next round.
// Between the two the round stands for S seconds, with its heartbeats. --calm: one heartbeat a
// minute and one look at the state every ten seconds, for machines too small for so many agents.
#include "base/text.h"
#include "io/fd.h"
#include "rendezvous/dynamic/c10d_place.h"
#include "rendezvous/dynamic/dynamic_backend.h"

#include <fmt/core.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>

namespace lockstep::rendezvous {
namespace {

using namespace std::chrono_literals;

// What the processes share.
struct Board {
  std::atomic<int> ready{0};
  std::atomic<int> port{0};
  std::atomic<int> errors{0};
  std::atomic<int> interruptions{0};
  std::atomic<bool> fail{false};
  std::array<std::atomic<int>, 2> placed{};  // by round
  std::atomic<std::int64_t> start{0};
  std::atomic<std::int64_t> host_cpu_us{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bytes{0};
};

struct Plan {
  int agents = 64;
  int processes = 2;  // beside the host's
  int seconds = 0;
  bool fail = false;
  bool calm = false;
};

std::int64_t now_ns() {
  return io::Clock::now().time_since_epoch().count();
}

class Crowd {
 public:
  Crowd(Board& board, const Plan& plan, int first, int count)
      : board_(board), hosts_(first == 0), timer_(loop_) {
    settings_.run_id = "sim";
    settings_.dynamic.min_nodes = settings_.dynamic.max_nodes =
        static_cast<std::size_t>(plan.agents);
    if (plan.calm) {
      settings_.dynamic.keep_alive_interval = 60s;
      settings_.dynamic.poll_interval = 10s;
    }
    for (int i = 0; i < count; ++i)
      add(first + i);
    if (!hosts_) return;
    open(*agents_.front());
    while (place_->server() == nullptr && board.errors == 0)
      loop_.run_once();
    board.port = place_->server()->port();
  }

  void run() {
    ++board_.ready;
    while (board_.start == 0) {
      usleep(100);
      if (hosts_) loop_.run_once();
    }
    if (!hosts_)
      for (auto& agent : agents_)
        open(*agent);
    look();
    loop_.run();
  }

 private:
  void add(int number) {
    dynamic::C10dPlaceSettings at{
        .endpoint = {"127.0.0.1", board_.port.load()},
        .run_id = "sim",
        .is_host = hosts_,
        .local_addr = fmt::format("10.{}.{}.1", number / 256, number % 256)};
    settings_.offer.host = *at.local_addr;
    auto place = std::make_unique<dynamic::C10dPlace>(loop_, std::move(at));
    place_ = place.get();
    agents_.push_back(std::make_unique<dynamic::DynamicBackend>(loop_, std::move(place), settings_,
                                                                [](const std::string& addr) {
                                                                  return StorePlace{addr, 7000};
                                                                }));
  }
  void open(dynamic::DynamicBackend& agent) {
    agent.on_interruption([this, &agent](const Interruption& why) {
      ++board_.interruptions;
      if (why.kind == Interruption::Kind::end) return error({Errc::unavailable, why.why, {}, 0});
      join(agent);
    });
    agent.open([this, &agent](const Result<void>& opened) {
      if (!opened) return error(opened.error());
      if (board_.start != 0) return join(agent);
      early_ = &agent;
    });
  }
  void join(dynamic::DynamicBackend& agent) {
    agent.join([this](const Result<std::optional<Round>>& joined) {
      if (!joined) return error(joined.error());
      const auto round = static_cast<std::size_t>((*joined)->number);
      if (round < board_.placed.size()) ++board_.placed[round];
    });
  }
  void error(const Error& error) {
    if (board_.errors++ == 0) fmt::print(stderr, "{}\n", error.message);
  }
  void look() {
    if (early_ != nullptr) join(*std::exchange(early_, nullptr));
    if (hosts_) tell_of_the_host();
    timer_.start(5ms, [this] { look(); });
  }
  // Notes what the host has used. With --fail it is also the host's worker that fails.
  void tell_of_the_host() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    board_.host_cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000 +
                         used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    const auto stats = place_->server()->stats();
    board_.requests = stats.requests_total;
    board_.bytes = stats.bytes_in + stats.bytes_out;
    if (!board_.fail.exchange(false)) return;
    agents_.front()->tell_failure("rank 7 on node-7 failed", false);
    join(*agents_.front());
  }

  Board& board_;
  bool hosts_;
  io::Loop loop_;
  io::Timer timer_;
  dynamic::DynamicBackendSettings settings_;
  dynamic::C10dPlace* place_ = nullptr;  // of the last agent: the host's own
  dynamic::DynamicBackend* early_ = nullptr;
  std::deque<std::unique_ptr<dynamic::DynamicBackend>> agents_;
};

struct Figures {
  double ms = 0;
  double host_cpu_ms = 0;
  double requests = 0;
  double megabytes = 0;
};

Figures figures(const Board& board, std::int64_t since) {
  return {static_cast<double>(now_ns() - since) / 1e6, static_cast<double>(board.host_cpu_us) / 1e3,
          static_cast<double>(board.requests), static_cast<double>(board.bytes) / 1e6};
}

bool all_placed(const Board& board, std::size_t round, int agents) {
  for (int i = 0; i < 300'000 && board.placed[round] < agents && board.errors == 0; ++i)
    usleep(1000);
  return board.placed[round] >= agents;
}

void print(const char* what, const Figures& before, const Figures& now) {
  fmt::print(
      R"(, "{0}_ms": {1:.1f}, "{0}_host_cpu_ms": {2:.1f}, "{0}_requests": {3:.0f}, "{0}_mb": {4:.1f})",
      what, now.ms, now.host_cpu_ms - before.host_cpu_ms, now.requests - before.requests,
      now.megabytes - before.megabytes);
}

std::vector<pid_t> start(Board& board, const Plan& plan) {
  std::vector<pid_t> children;
  int first = 0;
  for (int i = 0; i <= plan.processes; ++i) {
    const int count = i == 0 ? 1 : (plan.agents - first) / (plan.processes + 1 - i);
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Crowd(board, plan, first, count).run();
      _exit(0);
    }
    children.push_back(pid);
    first += count;
    while (board.port == 0)
      usleep(1000);
  }
  while (board.ready <= plan.processes)
    usleep(1000);
  return children;
}

int measure(const Plan& plan) {
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& board = *new (memory) Board;
  const auto children = start(board, plan);
  board.start = now_ns();
  bool good = all_placed(board, 0, plan.agents);
  fmt::print(R"({{"agents": {})", plan.agents);
  const Figures formed = figures(board, board.start);
  print("ranks", {}, formed);
  sleep(static_cast<unsigned>(plan.seconds));
  const Figures stood = figures(board, board.start);
  if (plan.seconds > 0) print("stand", formed, stood);
  if (good && plan.fail) {
    const std::int64_t failed = now_ns();
    board.fail = true;
    good = all_placed(board, 1, plan.agents);
    print("again", stood, figures(board, failed));
  }
  for (const pid_t pid : children)
    kill(pid, SIGKILL);
  while (wait(nullptr) > 0) {
  }
  fmt::print(R"(, "interruptions": {}, "good": {}}})"
             "\n",
             board.interruptions.load(), good);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::rendezvous

int main(int argc, char** argv) {
  using namespace lockstep;  // NOLINT
  rendezvous::Plan plan;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto number = [&] {
      return ++i < argc ? static_cast<int>(parse_int(argv[i]).value_or(0)) : 0;
    };
    if (flag == "--agents")
      plan.agents = number();
    else if (flag == "--processes")
      plan.processes = number();
    else if (flag == "--seconds")
      plan.seconds = number();
    else if (flag == "--fail")
      plan.fail = true;
    else if (flag == "--calm")
      plan.calm = true;
    else
      return 2;
  }
  if (plan.processes < 1 || plan.agents <= plan.processes || plan.seconds < 0) return 2;
  io::raise_open_files_limit();
  return rendezvous::measure(plan);
}
