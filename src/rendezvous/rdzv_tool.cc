// For tests: one agent of the c10d rendezvous without workers, from flags. Prints one JSON line per
// event; joins again when others wait; ends with the exit barrier and a close.
//   rdzv_tool --endpoint H:P --id ID --nnodes MIN:MAX --local-addr A --local-world-size N
//             [--role R] [--conf k=v,..] [--hold SECONDS] [--hold-again SECONDS]
//             [--no-close] [--fail-at SECONDS] [--linger SECONDS]
#include "base/text.h"
#include "codec/rdzv_conf.h"
#include "rendezvous/c10d.h"
#include "rendezvous/exit_barrier.h"
#include "rendezvous/rank_exchange.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>

namespace lockstep::rendezvous {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

void print(const json& event) {
  std::printf("%s\n", event.dump(-1, ' ', true, json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

class Tool {
 public:
  explicit Tool(std::map<std::string, std::string> flags)
      : flags_(std::move(flags)), hold_(loop_) {}

  int run() {
    auto settings = read_settings();
    if (!settings) {
      print({{"error", settings.error().message}});
      return 2;
    }
    rdzv_ = std::make_unique<C10d>(loop_, std::move(*settings));
    rdzv_->on_watched([this](const Watched& watched) { on_watched(watched); });
    rdzv_->on_lost([this](const Error& error) { fail(error); });
    rdzv_->open([this](Result<void> opened) {
      if (!opened) return fail(opened.error());
      print({{"event", "open"},
             {"hosts", rdzv_->hosts()},
             {"reason", rdzv_->host_reason()},
             {"addr", rdzv_->self().addr},
             {"port", rdzv_->port()}});
      join();
    });
    loop_.run();
    return code_;
  }

 private:
  std::string flag(const std::string& name, const std::string& otherwise) const {
    const auto at = flags_.find(name);
    return at == flags_.end() ? otherwise : at->second;
  }
  double seconds(const std::string& name) const { return parse_float(flag(name, "0")).value_or(0); }
  io::Duration duration(double value) const {
    return std::chrono::duration_cast<io::Duration>(std::chrono::duration<double>(value));
  }

  Result<C10dSettings> read_settings() const {
    C10dSettings settings;
    LOCKSTEP_TRY_ASSIGN(settings.endpoint, codec::parse_rdzv_endpoint(flag("endpoint", ""), 29400));
    LOCKSTEP_TRY_ASSIGN(const auto conf, codec::parse_rdzv_conf(flag("conf", "")));
    LOCKSTEP_TRY_ASSIGN(settings.is_host, codec::rdzv_conf_bool(conf, "is_host"));
    LOCKSTEP_TRY_ASSIGN(const auto join, codec::rdzv_conf_int(conf, "join_timeout"));
    LOCKSTEP_TRY_ASSIGN(const auto call, codec::rdzv_conf_int(conf, "last_call_timeout"));
    LOCKSTEP_TRY_ASSIGN(const auto read, codec::rdzv_conf_int(conf, "read_timeout"));
    settings.run_id = flag("id", "none");
    if (flags_.contains("local-addr")) settings.local_addr = flags_.at("local-addr");
    if (join) settings.dynamic.join_timeout = std::chrono::seconds(*join);
    if (call) settings.dynamic.last_call_timeout = std::chrono::seconds(*call);
    if (read) settings.read_timeout = std::chrono::seconds(*read);
    const auto nodes = split(flag("nnodes", "1"), ':');
    const auto count = [](const std::string& text) {
      return static_cast<std::size_t>(parse_int(text).value_or(1));
    };
    settings.dynamic.min_nodes = count(nodes.front());
    settings.dynamic.max_nodes = count(nodes.back());
    return settings;
  }

  void join() {
    rdzv_->join([this](Result<std::optional<RoundResult>> joined) {
      if (!joined) return fail(joined.error());
      if (!*joined) {
        print({{"event", "graceful_exit"}});
        return end(0);
      }
      exchange(std::move(**joined));
    });
  }

  void exchange(RoundResult round) {
    round_ = std::move(round);
    RankExchange exchange{.round = round_, .own = {}, .offered = {}};
    exchange.own.role = flag("role", "default");
    exchange.own.local_world_size = parse_int(flag("local-world-size", "1")).value_or(1);
    if (round_.rank == 0) {
      if (!workers_) {
        auto made = store::Server::listen(loop_, {});
        if (!made) return fail(made.error());
        workers_ = std::move(*made);
      }
      workers_->purge();
      exchange.offered = WorkerStore{rdzv_->self().addr, workers_->port()};
    }
    exchange_ranks(rdzv_->waits(), exchange, [this](Result<Assignment> made) {
      if (!made) return fail(made.error());
      print({{"event", "round"},
             {"round", round_.round},
             {"rank", round_.rank},
             {"world", round_.world},
             {"prefix", round_.prefix},
             {"hosts", rdzv_->hosts()},
             {"master_addr", made->workers.addr},
             {"master_port", made->workers.port},
             {"base_rank", made->ranks.base_rank},
             {"world_size", made->ranks.world_size},
             {"role_base_rank", made->ranks.role_base_rank},
             {"role_world_size", made->ranks.role_world_size}});
      in_round_ = true;
      const bool fails = flags_.contains("fail-at") && !failed_;
      const bool again = round_.round > 0 && flags_.contains("hold-again");
      const char* const time = fails ? "fail-at" : again ? "hold-again" : "hold";
      hold_.start(duration(seconds(time)), [this, fails] {
        if (!fails) return leave();
        failed_ = true;  // as an agent whose worker failed: back into the rendezvous
        in_round_ = false;
        print({{"event", "failed"}});
        join();
      });
    });
  }

  void on_watched(const Watched& watched) {
    if (!in_round_ || (watched.waiting == 0 && watched.takes_part)) return;
    in_round_ = false;
    hold_.cancel();
    print({{"event", "membership"},
           {"waiting", watched.waiting},
           {"takes_part", watched.takes_part}});
    join();
  }

  void leave() {
    in_round_ = false;
    enter_exit_barrier(rdzv_->waits(), round_, kExitBarrierTimeout, [this](Result<void> all) {
      print({{"event", "barrier"},
             {"ok", all.has_value()},
             {"error", all ? "" : all.error().message}});
      if (flags_.contains("no-close")) return end(0);
      rdzv_->close([this](Result<void> closed) {
        print({{"event", "closed"},
               {"ok", closed.has_value()},
               {"error", closed ? "" : closed.error().message}});
        end(0);
      });
    });
  }

  // A host stays a moment, so that the others hear their answers.
  void end(int code) {
    code_ = code;
    ended_ = true;
    const io::Duration linger = flags_.contains("linger") ? duration(seconds("linger"))
                                : rdzv_->hosts()          ? milliseconds(1500)
                                                          : milliseconds(0);
    hold_.start(linger, [this] { loop_.stop(); });
  }

  void fail(const Error& error) {
    if (std::exchange(ended_, true)) return;
    print({{"event", "error"}, {"error", error.message}});
    code_ = 1;
    hold_.start({}, [this] { loop_.stop(); });
  }

  std::map<std::string, std::string> flags_;
  io::Loop loop_;
  io::Timer hold_;
  std::unique_ptr<C10d> rdzv_;
  std::unique_ptr<store::Server> workers_;
  RoundResult round_;
  bool in_round_ = false;
  bool failed_ = false;
  bool ended_ = false;
  int code_ = 0;
};

}  // namespace
}  // namespace lockstep::rendezvous

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) return 2;
    const bool bare = name == "--no-close";
    flags[std::string(name.substr(2))] = bare || i + 1 == argc ? "" : argv[++i];
  }
  return lockstep::rendezvous::Tool(std::move(flags)).run();
}
