// Uses etcd as Lockstep does, for tests against a real one: reads one JSON command per line of
// stdin and prints JSON lines, until stdin ends. It takes endpoints, --rdzv-conf and a run id:
//   etcd_tool ENDPOINTS CONF RUN_ID
#include "base/text.h"
#include "io/fd.h"
#include "rendezvous/etcd/etcd_v2.h"
#include "rendezvous/etcd3/etcd3_election.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <array>
#include <cstdio>

#include "etcd_access_of.h"

using namespace lockstep;              // NOLINT
using namespace lockstep::rendezvous;  // NOLINT
using Json = nlohmann::json;
using std::chrono::milliseconds;

namespace {

void say(Json json) {
  std::printf("%s\n", json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

Json error_json(const Error& error) {
  return {{"error", error.message},
          {"errno", error.sys},
          {"hint", error.hint},
          {"denied", error.code == Errc::denied},
          {"timeout", error.code == Errc::timeout}};
}

Json facts_json(const std::optional<etcd3::Etcd3Facts>& facts) {
  if (!facts) return nullptr;
  return {{"round", facts->round}, {"restarts", facts->restarts}, {"closed", facts->closed}};
}

class Tool {
 public:
  Tool(io::Loop& loop, etcd::EtcdAccess access, std::string run_id)
      : loop_(loop), access_(std::move(access)), run_id_(std::move(run_id)), input_(loop, 0) {
    input_.start(io::kReadable, [this](int) { read(); });
  }

  Status open() {
    LOCKSTEP_TRY_ASSIGN(v2_, etcd::EtcdTransport::make(loop_, access_));
    LOCKSTEP_TRY_ASSIGN(v3_, etcd3::Etcd3Client::make(loop_, access_));
    state_ = std::make_unique<etcd::EtcdV2State>(*v2_, run_id_);
    store_ = std::make_unique<etcd::EtcdV2Store>(*v2_);
    return {};
  }

 private:
  void read() {
    std::array<char, 65536> chunk;
    const ssize_t got = ::read(0, chunk.data(), chunk.size());
    if (got < 0) return;
    if (got == 0) return loop_.stop();
    text_.append(chunk.data(), static_cast<std::size_t>(got));
    std::size_t end = 0;
    while ((end = text_.find('\n')) != std::string::npos) {
      const Json command = Json::parse(text_.substr(0, end));
      text_.erase(0, end + 1);
      const std::string op = command.at("op");
      if (!store_op(op, command) && !client_op(op, command) && !election_op(op, command))
        say({{"error", "what is " + op}});
    }
  }

  // {"id": ..., "value": ...}
  template <class T>
  auto answer(const Json& command) {
    return [id = command.at("id")](Result<T> result) {
      Json json = result ? Json{{"value", *result}} : error_json(result.error());
      json["id"] = id;
      say(json);
    };
  }
  auto done(const Json& command) {
    return [id = command.at("id")](Status result) {
      Json json = result ? Json{{"value", true}} : error_json(result.error());
      json["id"] = id;
      say(json);
    };
  }
  auto stored(const Json& command) {
    return [id = command.at("id")](Result<dynamic::StateStore::Stored> result) {
      if (!result) {
        Json json = error_json(result.error());
        json["id"] = id;
        return say(json);
      }
      say({{"id", id},
           {"value", result->text},
           {"token", result->token},
           {"written", result->written}});
    };
  }
  auto reply(const Json& command) {
    return [id = command.at("id")](Result<etcd3::Etcd3Reply> result) {
      if (!result) {
        Json json = error_json(result.error());
        json["id"] = id;
        return say(json);
      }
      Json kvs = Json::array();
      for (const auto& kv : result->kvs)
        kvs.push_back({kv.key, kv.value, kv.create_revision, kv.mod_revision});
      say({{"id", id},
           {"value", kvs},
           {"revision", result->revision},
           {"succeeded", result->succeeded},
           {"lease", result->lease},
           {"ttl", result->ttl},
           {"deleted", result->deleted}});
    };
  }

  bool store_op(const std::string& op, const Json& c) {
    const std::string key = c.value("key", "");
    const std::string value = c.value("value", "");
    const milliseconds timeout(c.value("timeout", 5000));
    if (op == "v2_set") {
      store_->set(key, value, done(c));
    } else if (op == "v2_multi_set") {
      store_->multi_set(c.at("entries").get<KeyValue::Entries>(), done(c));
    } else if (op == "v2_add") {
      store_->add(key, c.at("delta"), answer<std::int64_t>(c));
    } else if (op == "v2_put_if_absent") {
      store_->put_if_absent(key, value, answer<std::string>(c));
    } else if (op == "v2_probe") {
      store_->probe(key, [id = c.at("id")](Result<std::optional<std::string>> got) {
        Json json =
            got ? Json{{"value", *got ? Json(**got) : Json(nullptr)}} : error_json(got.error());
        json["id"] = id;
        say(json);
      });
    } else if (op == "v2_get") {
      store_->multi_get(c.at("keys"), timeout, answer<KeyValue::Keys>(c));
    } else if (op == "v2_wait") {
      store_->wait(c.at("keys"), timeout, done(c));
    } else if (op == "v2_watch") {
      kv_watch_ = store_->watch(key, [this, id = c.at("id")](const std::string& got) {
        kv_watch_.reset();
        say({{"id", id}, {"value", got}});
      });
    } else if (op == "v2_read_state") {
      state_->read(stored(c));
    } else if (op == "v2_write_state") {
      state_->write({"", c.at("token"), false}, c.at("text"), stored(c));
    } else {
      return false;
    }
    return true;
  }

  bool client_op(const std::string& op, const Json& c) {
    const std::string key = c.value("key", "");
    const std::string end = c.value("prefix", false) ? etcd3::etcd3_prefix_end(key) : "";
    const std::int64_t lease = c.value("lease", std::int64_t{0});
    if (op == "put") {
      v3_->put(key, c.at("value").get<std::string>(), lease, reply(c));
    } else if (op == "range") {
      v3_->range(key, end, reply(c));
    } else if (op == "remove") {
      v3_->remove(key, end, reply(c));
    } else if (op == "grant") {
      v3_->grant(c.at("ttl"), reply(c));
    } else if (op == "keep_alive") {
      v3_->keep_alive(lease, reply(c));
    } else if (op == "revoke") {
      v3_->revoke(lease, reply(c));
    } else if (op == "compact") {
      v3_->compact(c.at("revision"), reply(c));
    } else if (op == "swap") {  // writes `value`, if mod_revision and value are as told
      etcd3::Etcd3Txn txn;
      txn.compare = {{etcd3::Etcd3Compare::What::mod_revision, key, c.at("mod"), {}},
                     {etcd3::Etcd3Compare::What::value, key, 0, c.at("before")}};
      txn.success = {{etcd3::Etcd3Op::Kind::put, key, c.at("value"), lease}};
      txn.failure = {{etcd3::Etcd3Op::Kind::remove, key, "", 0}};
      v3_->txn(txn, false, reply(c));
    } else if (op == "watch") {
      watch(key, end, c.at("from"));
    } else {
      return false;
    }
    return true;
  }

  void watch(const std::string& key, const std::string& end, std::int64_t from) {
    etcd3::Etcd3Watch::Handlers handlers;
    handlers.events = [](const std::vector<etcd3::Etcd3Event>& events) {
      for (const auto& event : events)
        say({{"event", event.deleted ? "deleted" : "put"},
             {"key", event.kv.key},
             {"value", event.kv.value},
             {"revision", event.kv.mod_revision}});
    };
    handlers.gap = [](std::int64_t revision) { say({{"event", "gap"}, {"revision", revision}}); };
    handlers.trouble = [](const Error& error) {
      say({{"event", "trouble"}, {"error", error.message}});
    };
    watch_ = std::make_unique<etcd3::Etcd3Watch>(*v3_, key, end, from, std::move(handlers));
  }

  bool election_op(const std::string& op, const Json& c) {
    if (op == "elect") {
      elect(c);
    } else if (op == "publish") {
      election_->publish({c.at("addr"), c.at("port")}, done(c));
    } else if (op == "store_facts") {
      election_->store_facts({c.at("round"), c.at("restarts"), c.at("closed"), ""}, done(c));
    } else if (op == "load_facts") {
      election_->load_facts([id = c.at("id")](Result<std::optional<etcd3::Etcd3Facts>> facts) {
        Json json = facts ? Json{{"value", facts_json(*facts)}} : error_json(facts.error());
        json["id"] = id;
        say(json);
      });
    } else if (op == "resign") {
      election_->resign(done(c));
    } else {
      return false;
    }
    return true;
  }

  void elect(const Json& c) {
    etcd3::Etcd3Election::Handlers handlers;
    handlers.on_leader = [](const std::optional<StorePlace>& place) {
      say({{"event", "leader"},
           {"place", place ? Json(place->addr + ":" + std::to_string(place->port)) : Json()}});
    };
    handlers.on_elected = [](const std::optional<etcd3::Etcd3Facts>& facts) {
      say({{"event", "elected"}, {"facts", facts_json(facts)}});
    };
    handlers.on_deposed = [] { say({{"event", "deposed"}}); };
    handlers.on_unsure = [](const Error& error) {
      say({{"event", "unsure"}, {"error", error.message}});
    };
    handlers.on_sure = [] { say({{"event", "sure"}}); };
    handlers.on_lost = [](const Error& error) {
      Json json = error_json(error);
      json["event"] = "lost";
      say(json);
    };
    election_ = std::make_unique<etcd3::Etcd3Election>(
        *v3_, etcd3::Etcd3ElectionSettings{run_id_, c.value("ttl", 3)}, std::move(handlers));
    election_->start([id = c.at("id")](Result<std::optional<etcd3::Etcd3Facts>> facts) {
      Json json = facts ? Json{{"value", facts_json(*facts)}} : error_json(facts.error());
      json["id"] = id;
      say(json);
    });
  }

  io::Loop& loop_;
  etcd::EtcdAccess access_;
  std::string run_id_;
  io::Watch input_;
  std::string text_;
  std::unique_ptr<etcd::EtcdTransport> v2_;
  std::unique_ptr<etcd3::Etcd3Client> v3_;
  std::unique_ptr<etcd::EtcdV2State> state_;
  std::unique_ptr<etcd::EtcdV2Store> store_;
  std::unique_ptr<KeyValue::Watch> kv_watch_;
  std::unique_ptr<etcd3::Etcd3Watch> watch_;
  std::unique_ptr<etcd3::Etcd3Election> election_;
};

int run(const std::string& endpoints, const std::string& conf_text, const std::string& run_id) {
  auto access = access_of("etcd3", endpoints, conf_text);
  if (!access) {
    say(error_json(access.error()));
    return 2;
  }
  io::Loop loop;
  Tool tool(loop, std::move(*access), run_id);
  if (const auto opened = tool.open(); !opened) {
    say(error_json(opened.error()));
    return 2;
  }
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return run(argv[1], argv[2], argv[3]);
}
