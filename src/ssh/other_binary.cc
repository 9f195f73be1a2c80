#include "ssh/other_binary.h"

#include "base/text.h"
#include "http/gunzip.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "proc/spawn.h"

#include <elf.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace lockstep::ssh {
namespace {

constexpr std::size_t kMostShown = 60;          // of a host's own text in messages
constexpr std::size_t kHead = 16UL << 10;       // an executable's notes are near its start
constexpr std::size_t kMostBytes = 64UL << 20;  // several times the largest binary
constexpr std::uint16_t kLoongArch = 258;       // older elf.h lack the name

// The 64-bit machines that `uname -m` may name. The host's answer becomes part of a file name, so a
// word outside this list must never reach the file system ("../../.ssh/id_ed25519").
struct Machine {
  std::string_view name;
  std::uint16_t elf;
};
constexpr std::array<Machine, 6> kMachines = {{{"x86_64", EM_X86_64},
                                               {"aarch64", EM_AARCH64},
                                               {"ppc64le", EM_PPC64},
                                               {"riscv64", EM_RISCV},
                                               {"s390x", EM_S390},
                                               {"loongarch64", kLoongArch}}};

const Machine* known_machine(std::string_view name) {
  const auto* const found =
      std::find_if(kMachines.begin(), kMachines.end(),
                   [name](const Machine& machine) { return machine.name == name; });
  return found == kMachines.end() ? nullptr : found;
}

std::string this_machine() {
  utsname here{};
  uname(&here);
  return here.machine;
}

// Returns the folders that may have a binary for another machine. The first is this binary's own.
Result<std::vector<std::string>> folders() {
  LOCKSTEP_TRY_ASSIGN(const std::string own, proc::own_executable());
  const std::string beside = own.substr(0, own.rfind('/'));
  return std::vector<std::string>{beside, beside + "/../lib/lockstep", io::data_folder()};
}

// Fills path and packed. The path is empty if there is no file.
OtherBinary find_file(const std::vector<std::string>& places, std::string_view machine) {
  for (const std::string& place : places)
    for (const bool packed : {false, true}) {
      std::string path = place + "/lockstep-" + std::string(machine) + (packed ? ".gz" : "");
      if (access(path.c_str(), R_OK) == 0) return {std::move(path), packed, {}};
    }
  return {};
}

Failure wrong_file(const std::string& path, std::string_view why) {
  return fail(Errc::corrupt, path + " " + std::string(why),
              "install this version of Lockstep again, or remove that file");
}

}  // namespace

bool is_program_for(std::string_view head, std::string_view machine) {
  Elf64_Ehdr header{};
  if (head.size() < sizeof header) return false;
  std::memcpy(&header, head.data(), sizeof header);
  const Machine* const known = known_machine(machine);
  return known != nullptr && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == known->elf;
}

Result<OtherBinary> other_binary(std::string_view machine) {
  if (known_machine(machine) == nullptr)
    return fail(Errc::not_found, "its processor is '" + printable(machine, kMostShown) +
                                     "', and Lockstep has no binary for it");
  LOCKSTEP_TRY_ASSIGN(const std::vector<std::string> places, folders());
  OtherBinary other = find_file(places, machine);
  if (other.path.empty()) {
    const std::string file = "lockstep-" + std::string(machine);
    return fail(
        Errc::not_found,
        "its processor is " + std::string(machine) + ", and this binary is for " + this_machine(),
        "put the binary " + file + " or " + file + ".gz into " + places.front());
  }
  LOCKSTEP_TRY_ASSIGN(other.head, io::read_file(other.path, kHead));
  if (other.packed) other.head = http::gunzip_start(other.head, kHead);
  if (!is_program_for(other.head, machine))
    return wrong_file(other.path, "is not a program for " + std::string(machine));
  return other;
}

Result<std::string> unpacked_binary(const std::string& path) {
  // A file that is longer than the limit is read only in part, so it counts as damaged.
  LOCKSTEP_TRY_ASSIGN(const std::string packed, io::read_file(path, kMostBytes));
  auto binary = http::gunzip(packed, kMostBytes);
  if (!binary) return wrong_file(path, "is damaged");
  return binary;
}

std::vector<std::string> served_machines() {
  std::vector<std::string> served = {this_machine()};
  const auto places = folders();
  if (!places) return served;
  for (const Machine& machine : kMachines)
    if (machine.name != served.front() && !find_file(*places, machine.name).path.empty())
      served.emplace_back(machine.name);
  return served;
}

}  // namespace lockstep::ssh
