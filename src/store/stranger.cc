// Names other programs by their answer to a TCPStore greeting.
#include "store/stranger.h"

namespace lockstep::store {

Error no_store(const std::string& place, std::string_view answer) {
  Error error{Errc::corrupt, place + " is not a TCPStore: ", {}, 0};
  if (answer == "LOCK") {
    error.message += "a lockstep rendezvous hosts there";
    error.hint = "give --rdzv-backend lockstep here or c10d there";
  } else if (answer == "HTTP" || answer == "<!DO" || answer == "<htm" || answer == "<HTM") {
    error.message += "a web server answers there";
  } else if (answer == "SSH-") {
    error.message += "an SSH server answers there";
  } else {
    error.message += "the answer to the greeting is wrong";
  }
  return error;
}

}  // namespace lockstep::store
