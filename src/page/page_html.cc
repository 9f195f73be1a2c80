#include "page/page_html.h"

#include "base/text.h"
#include "codec/base64.h"
#include "codec/sha256.h"

#include <fmt/core.h>

namespace lockstep::page {

std::string page_html() {
  std::string html(page_frame());
  replace_all(html, "{{style}}", page_style());
  replace_all(html, "{{script}}", page_script());
  return html;
}

std::string page_policy() {
  // The hashes allow the page's own script and style only. A line of a log that smuggles in a
  // script shows it, and the browser does not run it.
  const auto hash = [](std::string_view text) { return codec::base64_encode(codec::sha256(text)); };
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
      "require-trusted-types-for 'script'",
      hash(page_script()), hash(page_style()));
}

}  // namespace lockstep::page
