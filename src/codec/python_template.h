// Python's string.Template(text).safe_substitute(names): replaces $name and ${name} by their value
// and $$ by $, and leaves everything else alone. Worker arguments and log prefixes are such
// templates.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::codec {

using TemplateNames = std::map<std::string, std::string, std::less<>>;

std::string substitute(std::string_view text, const TemplateNames& names);
// Returns the names in `text` that are missing in `names`.
std::vector<std::string> unknown_names(std::string_view text, const TemplateNames& names);

}  // namespace lockstep::codec
