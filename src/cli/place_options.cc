#include "cli/place_options.h"

namespace lockstep::cli {

Group place_group() {
  return {"Hosts",
          {
              {.name = "nodes",
               .field = into<&PlaceOptions::nodes>,
               .metavar = "all|0|1-3",
               .help = "nodes of the cluster",
               .shown_default = "all"},
              {.name = "user",
               .field = into<&PlaceOptions::user>,
               .metavar = "USER",
               .help = "log in as this user",
               .shown_default = "ssh's own choice"},
              {.name = "key-path",
               .field = into<&PlaceOptions::key_path>,
               .metavar = "FILE",
               .help = "private key",
               .shown_default = "ssh's own choice"},
              {.name = "jump",
               .field = into<&PlaceOptions::jump>,
               .metavar = "HOST",
               .help = "connect through this host"},
              help_option(),
              version_option(),
          }};
}

}  // namespace lockstep::cli
