#include "host/facts_json.h"

#include "codec/json_fields.h"

#include <utility>

namespace lockstep::host {

static void fields(codec::JsonFields& io, Space& f) {
  io("path", f.path);
  io("there", f.there);
  io("total", f.total);
  io("free", f.free);
  io("files_free", f.files_free);
  io("writable", f.writable);
  io("no_exec", f.no_exec);
}

static void fields(codec::JsonFields& io, GpuFacts& f) {
  io("vendor", f.vendor);
  io("name", f.name);
  io("uuid", f.uuid);
  io("memory", f.memory);
}

static void fields(codec::JsonFields& io, ProgramFacts& f) {
  io("path", f.path);
  io("version", f.version);
}

static void fields(codec::JsonFields& io, Facts& f) {
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

nlohmann::ordered_json facts_json(const Facts& facts) {
  return codec::write_fields(facts);
}

std::optional<Facts> parse_facts(const nlohmann::json& json) {
  Facts facts;
  const bool good = codec::read_fields(json, facts, {.text = 4096, .list = 1024}).has_value();
  return good ? std::optional(std::move(facts)) : std::nullopt;
}

}  // namespace lockstep::host
