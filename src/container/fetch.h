// Fetches an image onto this machine, before any rank starts. Jobs that start at the same time wait
// for one fetch.
#pragma once

#include "base/error.h"
#include "container/runtime.h"

#include <string>
#include <vector>

namespace lockstep::container {

// Returns what Request::image becomes. Holds a lock on a file in Lockstep's cache folder meanwhile.
// A signal that asks to end stops the fetch. The signals must be blocked. Errors name the image.
Result<std::string> fetch_image(const Chosen& chosen, const Image& image);

// Returns the names of the variables that the image sets. image: from fetch_image().
Result<std::vector<std::string>> image_variables(const Chosen& chosen, const std::string& image);

}  // namespace lockstep::container
