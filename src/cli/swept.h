// Commands on demand whose own answer comes first; then what the sweep beside them has found is
// said. The sweep never changes their exit code.
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

class Swept {
 public:
  explicit Swept(std::string_view program) : program_(program) {}
  Swept(const Swept&) = delete;
  Swept& operator=(const Swept&) = delete;
  ~Swept() { tell(); }

  Result<rent::OnDemand*> open();  // the world, which lives as long as this
  // Guards that are needed run from here on, and the sweep has begun.
  void begin();
  // Waits for the sweep, and says what it found: once.
  void tell();
  const cloud::Reconciled& found() const { return found_; }
  std::string_view program() const { return program_; }
  // Tells. Returns code, or that of a signal that came meanwhile.
  ExitCode end(ExitCode code);

 private:
  std::string_view program_;
  std::unique_ptr<rent::OnDemand> world_;
  std::optional<rent::Sweep> sweep_;
  cloud::Reconciled found_;
};

// Runs such a command, whose row must have Signals::blocked. Prints an error of act before what the
// sweep found, so this does not leave the error to dispatch.
ExitCode run_swept(const Call& call, const Table& table,
                   Result<ExitCode> (*act)(const Call&, Swept&));

// As `lockstep cost`, `up` and `down` have them for programs.
nlohmann::ordered_json rental_row(const rent::OnDemand& world, const cloud::Rental& rental);
nlohmann::ordered_json swept_json(const cloud::Reconciled& swept);

}  // namespace lockstep::cli
