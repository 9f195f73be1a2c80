#include "rendezvous/hub/hub_refusal.h"

namespace lockstep::rendezvous::hub {

Error refusal_error(const Refusal& refusal) {
  const auto code = [&] {
    switch (refusal.why) {
      case Why::token:
        return Errc::denied;
      case Why::closed:
      case Why::leaving:
        return Errc::canceled;
      case Why::timeout:
        return Errc::timeout;
      case Why::malformed:
        return Errc::corrupt;
      default:
        return Errc::invalid_input;
    }
  };
  return {code(), refusal.text, refusal.hint, 0};
}

}  // namespace lockstep::rendezvous::hub
