// Gathers the facts of `lockstep doctor` from this node: runs programs, reads /proc, asks the
// kernel.

#include "base/environment.h"
#include "base/text.h"
#include "host/nvidia_smi_command.h"
#include "host/port_owner.h"
#include "host/sysfs.h"
#include "proc/helper_output.h"
#include "setup/doctor.h"
#include "setup/gpu_table.h"
#include "setup/tool.h"
#include "setup/toolchain_probe.h"

#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::setup {
namespace {

constexpr int kMeetingPort = 29500;  // the default of torchrun, accelerate and DeepSpeed

SlurmFacts slurm_facts() {
  SlurmFacts slurm;
  slurm.installed = !find_program("sbatch").empty();
  if (!slurm.installed) return slurm;
  // Slurm can run without a local slurm.conf ("configless"), so an answer of the controller counts
  // as configured, too.
  const std::string path = env_text("SLURM_CONF");
  // Older packages of Debian use slurm-llnl.
  for (const std::string& each :
       {path, std::string("/etc/slurm/slurm.conf"), std::string("/etc/slurm-llnl/slurm.conf")})
    slurm.configured = slurm.configured || (!each.empty() && access(each.c_str(), R_OK) == 0);
  slurm.version = host::version_in(proc::helper_output({"sbatch", "--version"}).value_or(""));
  const std::string ping = proc::helper_output({"scontrol", "ping"}).value_or("");
  // scontrol ping prints "Slurmctld(primary) at HOST is UP".
  slurm.answers = ping.find(" is UP") != std::string::npos;
  slurm.configured = slurm.configured || slurm.answers;
  return slurm;
}

// Finds each GPU's row of nvidia-smi by UUID. Older drivers do not report the capability: then the
// GPU's name decides.
void add_capabilities(DoctorFacts& facts) {
  const bool any = std::any_of(facts.host.gpus.begin(), facts.host.gpus.end(),
                               [](const host::GpuFacts& gpu) { return gpu.vendor == "nvidia"; });
  const auto told = any ? proc::helper_output(host::nvidia_smi_capability_command()) : std::nullopt;
  const auto rows = host::parse_nvidia_smi_capabilities(told.value_or(""));
  facts.capabilities_from_driver = !rows.empty();
  for (const host::GpuFacts& gpu : facts.host.gpus) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& each) {
      return !gpu.uuid.empty() && each.uuid == gpu.uuid;
    });
    facts.capabilities.push_back(row != rows.end() ? row->capability : capability_of(gpu.name));
  }
}

void add_ports(DoctorFacts& facts) {
  // "32768\t60999" on Linux.
  const std::string range = host::read_text("/proc/sys/net/ipv4/ip_local_port_range").value_or("");
  const std::size_t tab = range.find_first_of(" \t");
  if (tab != std::string::npos) {
    facts.first_port = parse_int(range.substr(0, tab)).value_or(0);
    facts.last_port = parse_int(range.substr(tab + 1)).value_or(0);
  }
  facts.port_holder = host::port_holder(kMeetingPort);
}

bool clock_is_set() {
  // STA_UNSYNC is cleared by any NTP client that disciplines the kernel clock (chrony, ntpd,
  // systemd-timesyncd).
  timex state{};
  // adjtimex() with modes 0 only reads.
  return adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
}

}  // namespace

DoctorFacts examine(const std::string& given_python) {
  DoctorFacts facts;
  facts.host = host::gather_facts("", proc::helper_output);
  // A missing or broken Python is a finding, not an error of doctor.
  const auto python = choose_python(given_python);
  auto asked = python ? ask_python(*python) : Result<PythonFacts>(Failure(python.error()));
  if (asked)
    facts.python = std::move(*asked);
  else
    facts.python_error = asked.error().message;
  facts.tools = probe_toolchain(facts.python);
  add_capabilities(facts);
  add_ports(facts);
  facts.clock_set = clock_is_set();
  facts.slurm = slurm_facts();
  return facts;
}

}  // namespace lockstep::setup
