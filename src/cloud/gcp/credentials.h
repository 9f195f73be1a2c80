// Whose account it is: a key file of a service account, a user's file from gcloud, or gcloud
// itself; and the project.
#pragma once

#include "base/error.h"
#include "cloud/provider.h"

#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

struct Credentials {
  enum class Kind { service_account, authorized_user, gcloud };

  Kind kind = Kind::gcloud;
  std::string where = {};          // the file, or "gcloud"
  std::string project = {};        // what is rented is billed to
  std::string email = {};          // of a service account
  std::string private_key = {};    // secret
  std::string key_id = {};         // which of its keys
  std::string token_uri = {};      // who gives tokens
  std::string client_id = {};      // of a user
  std::string client_secret = {};  // secret
  std::string refresh_token = {};  // secret
  std::string quota_project = {};  // a user's: billed for the calls themselves
  bool exposed = false;            // others may read the file
};

inline constexpr std::string_view kTokenUri = "https://oauth2.googleapis.com/token";

// A file's text; no error shows any of it. Kind::gcloud: it needs what only gcloud can do.
Result<Credentials> parse_credentials(std::string_view text, const std::string& where);

// not_found: nowhere. Nothing is asked of the network.
Result<Credentials> find_credentials(const Ground& ground);

}  // namespace lockstep::cloud::gcp
