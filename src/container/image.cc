#include "container/image.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>

namespace lockstep::container {
namespace {

constexpr std::string_view kKnown =
    "as docker://HOST/NAME:TAG, an archive (.tar), a .sif or .sqsh file, a folder, or the name of "
    "an image that podman or docker has";

// A name begins with a letter or digit, so a runtime never takes the name for an option.
bool is_image_name(std::string_view name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._-/:@").find(c) != std::string_view::npos;
  };
  return !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::string absolute(std::string_view path, const std::string& folder) {
  return path.starts_with('/') ? std::string(path) : fmt::format("{}/{}", folder, path);
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [text](std::string_view ending) { return text.ends_with(ending); });
}

// docker's rule. podman would first look for the name among its own images, and has no other
// registry to ask on a fresh machine.
std::string whole_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return fmt::format("docker.io/library/{}", name);
  const std::string_view host = name.substr(0, slash);
  const bool is_host = host.find_first_of(".:") != host.npos || host == "localhost";
  return is_host ? std::string(name) : fmt::format("docker.io/{}", name);
}

Failure missing(std::string_view text) {
  return fail(Errc::not_found,
              fmt::format("--container {}: no such file or folder", printable(text)));
}

// A runtime would wait for the bytes of a FIFO for ever.
Failure neither(std::string_view text) {
  return fail(Errc::invalid_input,
              fmt::format("--container {} is neither a file nor a folder", printable(text)));
}

}  // namespace

Result<Image> read_image(std::string_view text, const std::string& folder, const AskPath& ask) {
  constexpr std::string_view kRegistry = "docker://";
  Image image{.kind = ImageKind::registry, .text = std::string(text), .place = {}};
  if (text.starts_with(kRegistry)) {
    const std::string_view name = text.substr(kRegistry.size());
    image.place = whole_name(name);
    if (is_image_name(name)) return image;
    return fail(Errc::invalid_input,
                fmt::format("--container {} is not the name of an image", printable(text)),
                std::string(kKnown));
  }
  for (const std::string_view scheme : {"oci-archive:", "docker-archive:"}) {
    if (!text.starts_with(scheme)) continue;
    image.kind = ImageKind::archive;
    image.place = absolute(text.substr(scheme.size()), folder);
    const PathKind found = ask(image.place);
    if (found == PathKind::other) return neither(text);
    if (found != PathKind::file) return missing(text);
    return image;
  }
  image.place = absolute(text, folder);
  const PathKind found = text.empty() ? PathKind::missing : ask(image.place);
  if (found == PathKind::other) return neither(text);
  image.kind = found == PathKind::folder                     ? ImageKind::folder
               : ends_with_any(text, {".sif"})               ? ImageKind::sif
               : ends_with_any(text, {".sqsh", ".squashfs"}) ? ImageKind::squashfs
               : ends_with_any(text, {".tar"})               ? ImageKind::archive
                                                             : ImageKind::local_name;
  if (image.kind != ImageKind::local_name)
    return found == PathKind::missing ? Result<Image>(missing(text)) : image;
  if (ends_with_any(text, {"/"}) || text.starts_with('/') || text.starts_with('.'))
    if (found == PathKind::missing) return missing(text);
  if (found == PathKind::file || !is_image_name(text) || text.find("://") != text.npos)
    return fail(Errc::invalid_input,
                fmt::format("--container {} is not an image of a known kind", printable(text)),
                std::string(kKnown));
  image.place = text;
  return image;
}

std::string_view kind_words(ImageKind kind) {
  switch (kind) {
    case ImageKind::folder:
      return "a folder";
    case ImageKind::archive:
      return "an archive";
    case ImageKind::sif:
      return "a .sif file";
    case ImageKind::squashfs:
      return "a .sqsh file";
    case ImageKind::registry:
      return "an image of a registry";
    case ImageKind::local_name:
      return "the name of an image";
  }
  return "an image";
}

}  // namespace lockstep::container
