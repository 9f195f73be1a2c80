// Measures many agents of the `lockstep` rendezvous, without workers, in several processes, against
// one host on loopback. Prints one JSON line.
//   hub_sim [--agents N] [--processes P] [--fail] [--token]
// Times are from the release of the agents (all started, none connected) until the last of them has
// its ranks; with --fail also from the failure of one agent's worker until all others are told, and
// until all have the ranks of the next round.
#include "base/text.h"
#include "io/fd.h"
#include "rendezvous/hub/hub_backend.h"

#include <fmt/core.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>

namespace lockstep::rendezvous {
namespace {

using namespace std::chrono_literals;

// What the processes share.
struct Board {
  std::atomic<int> ready{0};
  std::atomic<int> port{0};
  std::atomic<int> errors{0};
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> most_messages{0};
  std::array<std::atomic<std::int64_t>, 3> last{};  // ns: round 0 placed, told, round 1 placed
  std::array<std::atomic<int>, 3> count{};
  std::atomic<std::int64_t> start{0};
  std::atomic<std::int64_t> failed{0};
};

std::int64_t now_ns() {
  return io::Clock::now().time_since_epoch().count();
}

struct Plan {
  int agents = 64;
  int processes = 4;
  bool fail = false;
  bool token = false;
};

class Crowd {
 public:
  Crowd(Board& board, const Plan& plan, int first, int count, bool hosts)
      : board_(board), plan_(plan), first_(first), timer_(loop_) {
    const auto size = static_cast<std::size_t>(plan.agents);
    settings_.endpoint = {"127.0.0.1", board.port.load()};
    settings_.run_id = "sim";
    settings_.min_nodes = settings_.max_nodes = size;
    settings_.offer.max_restarts = 3;
    settings_.offer.launched.name = "train.py";
    if (plan.token) settings_.token = "a token for the simulation";
    settings_.offer_store = [](const std::string& addr) { return StorePlace{addr, 7000}; };
    settings_.is_host = false;
    if (!hosts) {
      add(count);
      return;
    }
    settings_.is_host = true;
    add(1);
    // The host listens before the others are released, as if it had been started a little early.
    host_ = agents_.front().get();
    open(*host_);
    while (!host_->hosts() && board.errors == 0)
      loop_.run_once();
    board.port = settings_.endpoint.port = host_->port();
    settings_.is_host = false;
    add(count - 1);
  }

  void run() {
    ++board_.ready;
    while (board_.start == 0) {
      usleep(100);
      loop_.run_once();
    }
    for (auto& agent : agents_) {
      if (agent.get() != host_) open(*agent);
    }
    watch_board();
    loop_.run();
  }

 private:
  void add(int count) {
    for (int i = 0; i < count; ++i) {
      const int number = first_ + static_cast<int>(agents_.size());
      settings_.offer.host = fmt::format("node-{}", number);
      settings_.local_addr = fmt::format("10.{}.{}.1", number / 256, number % 256);
      agents_.push_back(std::make_unique<hub::HubBackend>(loop_, settings_));
    }
  }
  void open(hub::HubBackend& agent) {
    agent.on_interruption([this, &agent](const Interruption&) {
      mark(1);
      join(agent);
    });
    agent.open([this, &agent](Result<void> opened) {
      if (!opened) return error(opened.error());
      if (board_.start != 0) return join(agent);
      early_ = &agent;
    });
  }
  void join(hub::HubBackend& agent) {
    agent.join([this, &agent](Result<std::optional<Round>> joined) {
      if (!joined) return error(joined.error());
      const auto& round = joined->value();
      if (round.number == 0) {
        const auto sent = agent.member().messages();
        board_.messages += sent;
        auto most = board_.most_messages.load();
        while (sent > most && !board_.most_messages.compare_exchange_weak(most, sent)) {
        }
      }
      mark(round.number == 0 ? 0 : 2);
    });
  }
  void mark(std::size_t what) {
    const std::int64_t now = now_ns();
    auto last = board_.last[what].load();
    while (now > last && !board_.last[what].compare_exchange_weak(last, now)) {
    }
    ++board_.count[what];
  }
  void error(const Error& error) {
    if (board_.errors++ == 0) fmt::print(stderr, "{}\n", error.message);
  }
  // In the host's process this also makes the failure happen, at the last agent there.
  void watch_board() {
    if (early_ != nullptr) join(*std::exchange(early_, nullptr));
    if (first_ == 0 && plan_.fail && board_.count[0] == plan_.agents && board_.failed == 0) {
      board_.failed = now_ns();
      auto& agent = *agents_.back();
      agent.tell_failure("rank 7 on node-7 failed", false);
      join(agent);
    }
    timer_.start(5ms, [this] { watch_board(); });
  }

  Board& board_;
  Plan plan_;
  int first_;
  io::Loop loop_;
  io::Timer timer_;
  hub::HubSettings settings_;
  hub::HubBackend* host_ = nullptr;
  hub::HubBackend* early_ = nullptr;
  std::deque<std::unique_ptr<hub::HubBackend>> agents_;
};

double ms_since(std::int64_t start, std::int64_t end) {
  return static_cast<double>(end - start) / 1e6;
}

bool wait_for(const Board& board, std::size_t what, int count) {
  for (int i = 0; i < 60'000 && board.count[what] < count && board.errors == 0; ++i)
    usleep(1000);
  return board.count[what] >= count;
}

int measure(const Plan& plan) {
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& board = *new (memory) Board;
  std::vector<pid_t> children;
  int first = 0;
  for (int i = 0; i < plan.processes; ++i) {
    const int count = (plan.agents - first) / (plan.processes - i);
    const pid_t pid = fork();
    if (pid == 0) {
      Crowd(board, plan, first, count, i == 0).run();
      _exit(0);
    }
    children.push_back(pid);
    first += count;
    if (i == 0) {
      while (board.port == 0)
        usleep(1000);
    }
  }
  while (board.ready < plan.processes)
    usleep(1000);
  board.start = now_ns();
  bool good = wait_for(board, 0, plan.agents);
  if (good && plan.fail)
    good = wait_for(board, 1, plan.agents - 1) && wait_for(board, 2, plan.agents);
  for (const pid_t pid : children)
    kill(pid, SIGKILL);
  while (wait(nullptr) > 0) {
  }
  fmt::print(R"({{"agents": {}, "good": {}, "ranks_ms": {:.1f}, "messages_per_agent": {:.3f}, )"
             R"("most_messages": {})",
             plan.agents, good, ms_since(board.start, board.last[0]),
             static_cast<double>(board.messages) / plan.agents, board.most_messages.load());
  if (plan.fail)
    fmt::print(R"(, "told_ms": {:.1f}, "again_ms": {:.1f})", ms_since(board.failed, board.last[1]),
               ms_since(board.failed, board.last[2]));
  fmt::print("}}\n");
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
    else if (flag == "--fail")
      plan.fail = true;
    else if (flag == "--token")
      plan.token = true;
    else
      return 2;
  }
  if (plan.processes < 1 || plan.agents < plan.processes) return 2;
  io::raise_open_files_limit();
  return rendezvous::measure(plan);
}
