#include "sync/host_place.h"

#include "base/text.h"
#include "io/fd.h"

#include <fmt/core.h>

#include <errno.h>

#include <cstdlib>
#include <memory>
#include <utility>

namespace lockstep::sync {
namespace {
constexpr std::size_t kMostRecord = 1UL << 30;
}  // namespace

std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

bool lies_in(std::string_view path, std::string_view folder) {
  return path == folder || folder == "/" ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

Result<std::string> wanted_place(std::string destination, const std::string& home) {
  const std::string shown = printable(destination);
  if (destination == "~" || destination.starts_with("~/")) destination.erase(0, 2);
  while (destination.size() > 1 && destination.ends_with('/'))
    destination.pop_back();
  for (const std::string& part : split(destination, '/'))
    if (part == ".." || part == ".")
      return fail(Errc::invalid_input, fmt::format("{} is no plain path on a host", shown));
  if (destination.empty() || destination == "/")
    return fail(Errc::invalid_input,
                fmt::format("{} would be all of the home or the machine", shown),
                "name a folder in it");
  return destination.starts_with('/') ? destination : home + "/" + destination;
}

Result<std::string> find_place(const std::string& destination, const std::string& home) {
  LOCKSTEP_TRY_ASSIGN(const std::string wanted, wanted_place(destination, home));
  auto real = real_path(wanted);
  if (!real) return fail_sys(printable(wanted), errno);
  return std::move(*real);
}

std::string record_path(const HostFolders& folders, const std::string& place) {
  return folders.records + "/" + record_name(place);
}

Result<Record> read_record(const HostFolders& folders, const std::string& place) {
  LOCKSTEP_TRY_ASSIGN(const std::string bytes,
                      io::read_file(record_path(folders, place), kMostRecord));
  LOCKSTEP_TRY_ASSIGN(Record record, decode_record(bytes));
  if (record.place != place) return fail(Errc::corrupt, "the record is of another place");
  return record;
}

Result<Record> read_own_record(const HostFolders& folders, const std::string& place,
                               const Owner& owner) {
  LOCKSTEP_TRY_ASSIGN(Record record, read_record(folders, place));
  if (record.owner != owner)
    return fail(Errc::already_exists, fmt::format("{} was taken over by {} in the meantime",
                                                  printable(place), owner_text(record.owner)));
  return record;
}

}  // namespace lockstep::sync
