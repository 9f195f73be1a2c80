#include "host/facts_json.h"

#include <type_traits>

namespace lockstep::host {
namespace {

constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostGpus = 1024;

// One list of members for each struct, walked by what writes and by what reads.
template <class F>
using Is = std::remove_const_t<F>;

template <class Io, class F>
requires std::is_same_v<Is<F>, Space>
void fields(Io& io, F& f) {
  io("path", f.path);
  io("there", f.there);
  io("total", f.total);
  io("free", f.free);
  io("files_free", f.files_free);
  io("writable", f.writable);
  io("no_exec", f.no_exec);
}

template <class Io, class F>
requires std::is_same_v<Is<F>, GpuFacts>
void fields(Io& io, F& f) {
  io("vendor", f.vendor);
  io("name", f.name);
  io("uuid", f.uuid);
  io("memory", f.memory);
}

template <class Io, class F>
requires std::is_same_v<Is<F>, ProgramFacts>
void fields(Io& io, F& f) {
  io("path", f.path);
  io("version", f.version);
}

template <class Io, class F>
requires std::is_same_v<Is<F>, Facts>
void fields(Io& io, F& f) {
  io("user", f.user);
  io("uid", f.uid);
  io("host", f.host);
  io("machine", f.machine);
  io("os", f.os);
  io("kernel", f.kernel);
  io("arch", f.arch);
  io("cpus", f.cpus);
  io("cpu_quota", f.cpu_quota);
  io("memory", f.memory);
  io("memory_available", f.memory_available);
  io("memory_limit", f.memory_limit);
  io("home", f.home);
  io("tmp", f.tmp);
  io("shm", f.shm);
  io("gpus", f.gpus);
  io("driver", f.driver);
  io("python", f.python);
  io("project_python", f.project_python);
  io("rsync", f.rsync);
  io("git", f.git);
  io("uv", f.uv);
  io("open_files", f.open_files);
  io("open_files_hard", f.open_files_hard);
  io("logout_kills", f.logout_kills);
}

struct Writer {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();

  template <class Value>
  void operator()(const char* name, const Value& value) {
    if constexpr (requires(Writer & io) { fields(io, value); }) {
      Writer inner;
      fields(inner, value);
      json[name] = std::move(inner.json);
    } else {
      json[name] = value;
    }
  }
  void operator()(const char* name, const std::vector<GpuFacts>& gpus) {
    json[name] = nlohmann::ordered_json::array();
    for (const GpuFacts& gpu : gpus) {
      Writer inner;
      fields(inner, gpu);
      json[name].push_back(std::move(inner.json));
    }
  }
};

struct Reader {
  const nlohmann::ordered_json& json;
  bool good = true;

  void operator()(const char* name, std::string& text) {
    const auto* at = find(name);
    if (at == nullptr || !at->is_string()) return broken();
    text = at->get<std::string>();
    if (text.size() > kMostText) broken();
  }
  void operator()(const char* name, std::int64_t& number) {
    const auto* at = find(name);
    if (at == nullptr || !at->is_number_integer()) return broken();
    number = at->get<std::int64_t>();
  }
  void operator()(const char* name, double& number) {
    const auto* at = find(name);
    if (at == nullptr || !at->is_number()) return broken();
    number = at->get<double>();
  }
  void operator()(const char* name, bool& flag) {
    const auto* at = find(name);
    if (at == nullptr || !at->is_boolean()) return broken();
    flag = at->get<bool>();
  }
  void operator()(const char* name, std::vector<GpuFacts>& gpus) {
    const auto* at = find(name);
    if (at == nullptr || !at->is_array() || at->size() > kMostGpus) return broken();
    for (const auto& each : *at)
      read(each, gpus.emplace_back());
  }
  template <class Value>
  void operator()(const char* name, Value& value) {
    const auto* at = find(name);
    if (at == nullptr) return broken();
    read(*at, value);
  }

 private:
  template <class Value>
  void read(const nlohmann::ordered_json& from, Value& value) {
    Reader inner{from};
    fields(inner, value);
    good = good && inner.good;
  }
  const nlohmann::ordered_json* find(const char* name) const {
    const auto at = json.find(name);
    return at == json.end() ? nullptr : &*at;
  }
  void broken() { good = false; }
};

}  // namespace

nlohmann::ordered_json facts_json(const Facts& facts) {
  Writer writer;
  fields(writer, facts);
  return std::move(writer.json);
}

std::optional<Facts> parse_facts(const nlohmann::ordered_json& json) {
  Facts facts;
  Reader reader{json};
  fields(reader, facts);
  return reader.good ? std::optional(std::move(facts)) : std::nullopt;
}

}  // namespace lockstep::host
