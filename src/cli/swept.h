// The sweep beside a command on demand: runs while the command works, and reports after the
// command's own answer. A sweep never changes the command's exit code.
#pragma once

#include "cli/options.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "rent/on_demand.h"
#include "rent/sweep.h"

#include <memory>
#include <optional>
#include <string_view>

namespace lockstep::cli {

// The world of a command, and the sweep. The destructor waits for a running sweep and reports the
// result.
class Swept {
 public:
  explicit Swept(std::string_view program) : program_(program) {}
  Swept(const Swept&) = delete;
  Swept& operator=(const Swept&) = delete;
  ~Swept() { tell(); }

  // Opens the journal and the providers. The result lives as long as this object.
  Result<rent::OnDemand*> open();
  // Makes sure that needed guards run, then starts the sweep. Call after open().
  void begin();
  // Waits for the sweep and prints the result. A second call does nothing.
  void tell();
  // Returns the sweep's result; empty before tell().
  const cloud::Reconciled& found() const { return found_; }
  std::string_view program() const { return program_; }
  // Calls tell(), unless `code` means that a signal stopped the command. Returns `code`, or the
  // exit code of a signal during the sweep.
  ExitCode end(ExitCode code);

 private:
  std::string_view program_;
  std::unique_ptr<rent::OnDemand> world_;
  std::optional<rent::Sweep> sweep_;
  cloud::Reconciled found_;
};

// Runs a command with a sweep beside it and returns the exit code. The command's row must have
// Signals::blocked. Prints the error of `act` itself, because dispatch would print the error after
// the sweep's report.
ExitCode run_swept(const Call& call, const Table& table,
                   Result<ExitCode> (*act)(const Call&, Swept&));

// Return a rental, and a sweep's result, as the --json of `cost`, `up` and `down` prints them.
nlohmann::ordered_json rental_row(const rent::OnDemand& world, const cloud::Rental& rental);
nlohmann::ordered_json swept_json(const cloud::Reconciled& swept);

}  // namespace lockstep::cli
