// The rows of the table, each defined in the file named after the backend.
#pragma once

#include "launch/backend_row.h"

namespace lockstep::launch {

extern const BackendRow kStatic;
extern const BackendRow kC10d;
extern const BackendRow kEtcd;
extern const BackendRow kEtcdV2;
extern const BackendRow kEtcd3;
extern const BackendRow kLockstep;

}  // namespace lockstep::launch
