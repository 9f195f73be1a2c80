#include "cli/exit_code.h"

namespace lockstep::cli {

ExitCode code_of(const Error& error, const ErrorCodes& codes) {
  switch (error.code) {
    case Errc::canceled:
      return error.sys > 0 ? stopped_by(error.sys) : codes.other;
    case Errc::invalid_input:
      return codes.usage;
    case Errc::not_found:
      return codes.missing_is_usage ? codes.usage : codes.other;
    default:
      return codes.other;
  }
}

}  // namespace lockstep::cli
