// Runs one agent of a rendezvous backend, without workers, for tests. Prints one JSON line per
// event, joins again when it is interrupted, ends with the exit barrier and leaves.
//   backend_tool file|etcd --endpoint E --id ID --nnodes MIN:MAX --local-addr A
//                [--local-world-size N] [--role R] [--conf k=v,..] [--hold SECONDS]
//                [--fail-at SECONDS] [--stop-at SECONDS]
#include "base/text.h"
#include "codec/rdzv_conf.h"
#include "rendezvous/dynamic/dynamic_backend.h"
#include "rendezvous/dynamic/file_place.h"
#include "rendezvous/etcd/etcd_legacy.h"
#include "store/server.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>

#include "etcd_access_of.h"

namespace lockstep::rendezvous {
namespace {

using nlohmann::json;
using std::chrono::seconds;

void print(const json& event) {
  std::printf("%s\n", event.dump(-1, ' ', true, json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

class Tool {
 public:
  Tool(std::string kind, std::map<std::string, std::string> flags)
      : kind_(std::move(kind)), flags_(std::move(flags)), hold_(loop_) {}

  int run() {
    if (auto made = make(); !made) {
      print({{"event", "error"}, {"error", made.error().message}});
      return 2;
    }
    backend_->on_interruption([this](const Interruption& what) { interrupted(what); });
    backend_->open([this](const Result<void>& opened) {
      if (!opened) return fail(opened.error());
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

  Status make() {
    LOCKSTEP_TRY_ASSIGN(const auto conf, codec::parse_rdzv_conf(flag("conf", "")));
    LOCKSTEP_TRY_ASSIGN(const auto last_call, codec::rdzv_conf_int(conf, "last_call_timeout"));
    LOCKSTEP_TRY_ASSIGN(const auto timeout, codec::rdzv_conf_int(conf, "timeout"));
    const auto nodes = split(flag("nnodes", "1"), ':');
    const auto min = static_cast<std::size_t>(parse_int(nodes.front()).value_or(1));
    const auto max = static_cast<std::size_t>(parse_int(nodes.back()).value_or(1));
    NodeOffer offer;
    offer.role = flag("role", "default");
    offer.local_world_size = static_cast<int>(parse_int(flag("local-world-size", "1")).value_or(1));
    offer.host = flag("local-addr", "");
    const OfferStore offer_store = [this](const std::string& addr) -> Result<StorePlace> {
      if (!workers_) {
        LOCKSTEP_TRY_ASSIGN(workers_, store::Server::listen(loop_, {}));
      }
      workers_->purge();
      return StorePlace{addr, workers_->port()};
    };
    if (kind_ == "file") {
      dynamic::DynamicBackendSettings settings{
          .run_id = flag("id", "none"), .dynamic = {}, .offer = offer};
      settings.dynamic.min_nodes = min;
      settings.dynamic.max_nodes = max;
      if (last_call) settings.dynamic.last_call_timeout = seconds(*last_call);
      if (timeout) settings.dynamic.join_timeout = seconds(*timeout);
      backend_ = std::make_unique<dynamic::DynamicBackend>(
          loop_,
          std::make_unique<dynamic::FilePlace>(
              loop_, dynamic::FilePlaceSettings{.path = flag("endpoint", ""),
                                                .run_id = settings.run_id,
                                                .local_addr = flag("local-addr", "")}),
          settings, offer_store);
      return {};
    }
    etcd::EtcdLegacySettings settings{.access = {}, .run_id = flag("id", "none"), .offer = offer};
    LOCKSTEP_TRY_ASSIGN(settings.access, access_of("etcd", flag("endpoint", ""), flag("conf", "")));
    settings.local_addr = flag("local-addr", "");
    settings.rules.min_nodes = min;
    settings.rules.max_nodes = max;
    if (last_call) settings.rules.last_call_timeout = seconds(*last_call);
    if (timeout) settings.rules.join_timeout = seconds(*timeout);
    if (conf.contains("etcd_prefix")) settings.prefix = conf.at("etcd_prefix");
    backend_ = std::make_unique<etcd::EtcdLegacy>(loop_, std::move(settings), offer_store);
    return {};
  }

  void join() {
    hold_.cancel();
    print({{"event", "joining"}});
    backend_->join([this](const Result<std::optional<Round>>& joined) {
      if (!joined) return fail(joined.error());
      if (*joined) return begin(**joined);
      print({{"event", "released"}});
      end(0);
    });
  }

  void begin(const Round& round) {
    print({{"event", "round"},
           {"number", round.number},
           {"restarts", round.restarts},
           {"group_rank", round.group_rank},
           {"group_world_size", round.group_world_size},
           {"base_rank", round.base_rank},
           {"world_size", round.world_size},
           {"role_base_rank", round.role_base_rank},
           {"role_world_size", round.role_world_size},
           {"master_addr", round.master_addr},
           {"master_port", round.master_port},
           {"use_agent_store", round.use_agent_store}});
    const bool fails = flags_.contains("fail-at") && !std::exchange(failed_, true);
    const char* const time = fails ? "fail-at" : flags_.contains("stop-at") ? "stop-at" : "hold";
    const std::chrono::duration<double> pause(parse_float(flag(time, "0")).value_or(0));
    hold_.start(std::chrono::duration_cast<io::Duration>(pause), [this, fails] {
      if (fails) {
        backend_->tell_failure("rank 0 failed", false);
        return join();
      }
      if (flags_.contains("stop-at")) return leave(Departure::stopped);
      finish();
    });
  }

  void finish() {
    backend_->finish([this](const Result<void>& all) {
      print({{"event", "barrier"}, {"ok", all.has_value()}, {"error", text_of(all)}});
      leave(Departure::succeeded);
    });
  }

  void leave(Departure how) {
    hold_.cancel();
    backend_->leave(how, [this, how](const Result<void>& left) {
      print({{"event", "left"}, {"ok", left.has_value()}, {"error", text_of(left)}});
      end(how == Departure::failed ? 1 : 0);
    });
  }

  void interrupted(const Interruption& what) {
    const bool over = what.kind == Interruption::Kind::end;
    print({{"event", "interrupted"}, {"kind", over ? "end" : "rejoin"}, {"why", what.why}});
    if (over) return leave(Departure::failed);
    join();
  }

  static std::string text_of(const Result<void>& result) {
    return result ? std::string() : result.error().message;
  }

  void end(int code) {
    code_ = code;
    hold_.start({}, [this] { loop_.stop(); });
  }
  void fail(const Error& error) {
    print({{"event", "error"}, {"error", error.message}});
    end(1);
  }

  std::string kind_;
  std::map<std::string, std::string> flags_;
  io::Loop loop_;
  io::Timer hold_;
  std::unique_ptr<store::Server> workers_;
  std::unique_ptr<Backend> backend_;
  bool failed_ = false;
  int code_ = 0;
};

}  // namespace
}  // namespace lockstep::rendezvous

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::map<std::string, std::string> flags;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) return 2;
    flags[std::string(name.substr(2))] = argv[i + 1];
  }
  return lockstep::rendezvous::Tool(argv[1], std::move(flags)).run();
}
