#include "slurm/preflight_text.h"

#include "codec/json_fields.h"

#include <utility>

namespace lockstep::slurm {
namespace {

// Nodes and files that are not trusted write these texts, and people see them.
constexpr codec::JsonRules kOfNodes{.strict = false, .list = 100'000, .printable = 800};

}  // namespace

static void fields(codec::JsonFields& io, FolderFacts& folder) {
  io("path", folder.path);
  io("trouble", folder.trouble);
  io("free_mib", folder.free_mib);
  io("total_mib", folder.total_mib);
}

static void fields(codec::JsonFields& io, PythonAnswer& python) {
  io("asked", python.asked);
  io("finished", python.finished);
  io("path", python.path);
  io("version", python.version);
  io("torch", python.torch);
  io("trouble", python.trouble);
  io("gpus", python.gpus);
  io("broken", python.broken);
}

static void fields(codec::JsonFields& io, Unreached& unreached) {
  io("node", unreached.node);
  io("why", unreached.why);
  auto how = static_cast<int>(unreached.how);
  io("how", how);
  if (!io.reads()) return;
  const bool known = how == static_cast<int>(Unreached::How::refused) ||
                     how == static_cast<int>(Unreached::How::other);
  unreached.how = known ? static_cast<Unreached::How>(how) : Unreached::How::cut;
}

// Without arrived_ms, which the reading node sets by its own clock.
static void fields(codec::JsonFields& io, NodeFacts& facts) {
  io.needed("clock_ms", facts.clock_ms);
  io("temp", facts.temp);
  io("job", facts.job);
  io("shared_memory", facts.shared_memory);
  io("gpus_given", facts.gpus_given);
  io("gpus_seen", facts.gpus_seen);
  io("gpu_users", facts.gpu_users);
  io("memlock_kib", facts.memlock_kib);
  io("fabric", facts.fabric);
  io("port_trouble", facts.port_trouble);
  io.optional("image_trouble", facts.image_trouble);
  io("python", facts.python);
  io("unreached", facts.unreached);
}

static void fields(codec::JsonFields& io, LeftOut& left_out) {
  io("node", left_out.node);
  io("why", left_out.why);
  io("bad", left_out.bad);
}

static void fields(codec::JsonFields& io, PreflightDecision& decision) {
  io.needed("ends", decision.ends);
  io("left_out", decision.left_out);
  io("lines", decision.lines);
}

std::string facts_text(const NodeFacts& facts) {
  return codec::print_json(codec::write_fields(facts));
}

Result<NodeFacts> facts_from_text(std::string_view text, int nodes) {
  NodeFacts facts;
  if (!codec::read_fields(codec::parse_json(text), facts, kOfNodes))
    return fail(Errc::corrupt, "the message must be the facts of a node");
  std::erase_if(facts.unreached,
                [&](const Unreached& each) { return each.node < 0 || each.node >= nodes; });
  return facts;
}

std::string decision_text(const PreflightDecision& decision) {
  return codec::print_json(codec::write_fields(decision)) + "\n";
}

Result<PreflightDecision> decision_from_text(std::string_view text) {
  PreflightDecision decision;
  if (!codec::read_fields(codec::parse_json(text, {.bytes = 16U << 20}), decision, kOfNodes))
    return fail(Errc::corrupt, "the text must be the decision of a pre-flight");
  return decision;
}

void take_python_line(std::string_view line, PythonAnswer& answer) {
  // Imported modules print lines of their own.
  constexpr std::string_view kMarker = "lockstep:";
  if (!line.starts_with(kMarker)) return;
  const nlohmann::json json = codec::parse_json(line.substr(kMarker.size()));
  PythonAnswer said;
  if (!codec::read_fields(json, said, kOfNodes)) return;
  if (json.contains("version")) answer.version = said.version;
  if (!json.contains("torch")) return;
  answer.finished = true;
  answer.torch = said.torch;
  answer.trouble = said.trouble;
  answer.gpus = said.gpus;
  answer.broken = std::move(said.broken);
}

}  // namespace lockstep::slurm
