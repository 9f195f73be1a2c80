"""The keys that the fakes accept, and the files in which clients find them. All keys are invented for tests."""
import base64
import hashlib
import json
import os
import pathlib
import subprocess

AWS_KEY, AWS_SECRET = "AKIALOCKSTEPFAKE0001", "fakeSecret/of+the+test+server/0123456789"
LAMBDA_KEY = "secret_lockstep_fake_0123456789abcdef.lambda"
RUNPOD_KEY = "rpa_LOCKSTEPFAKE0123456789ABCDEF"
GCP_EMAIL = "tester@lockstep-test.iam.gserviceaccount.com"
REFRESH = {"client_id": "fake-client.apps.googleusercontent.com", "client_secret": "fake-client-secret",
           "refresh_token": "1//fake-refresh-token"}
SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


class Keys:
    def __init__(self, folder, url, catalog):
        self.folder, self.url = pathlib.Path(folder), url
        self.home = self.folder / "home"
        self.project = catalog["gcp"]["project"]
        self.key_id = hashlib.sha256(b"lockstep fake key").hexdigest()[:40]
        self.folder.mkdir(parents=True, exist_ok=True)
        pem = self.rsa()
        self.modulus = modulus(self.folder / "gcp.pem")
        self.write("aws/credentials",
                   f"[default]\naws_access_key_id = {AWS_KEY}\naws_secret_access_key = {AWS_SECRET}\n")
        self.write("aws/config", "[default]\nregion = us-east-1\n")
        self.write("gcp.json", json.dumps({
            "type": "service_account", "project_id": self.project, "private_key_id": self.key_id, "private_key": pem,
            "client_email": GCP_EMAIL, "client_id": "100000000000000000001", "token_uri": f"{url}/token",
            "universe_domain": "googleapis.com"}, indent=1))
        self.write("gcp_user.json", json.dumps({"type": "authorized_user", "token_uri": f"{url}/token", **REFRESH}))
        self.write("home/.lambda_cloud/lambda_keys", f"api_key = {LAMBDA_KEY}\n")
        self.write("home/.runpod/config.toml", f'apikey = "{RUNPOD_KEY}"\n')
        self.env = {
            "AWS_ENDPOINT_URL": url, "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "aws/credentials"),
            "AWS_CONFIG_FILE": str(self.folder / "aws/config"), "AWS_EC2_METADATA_DISABLED": "true",
            "LOCKSTEP_GCE_ENDPOINT": url, "GOOGLE_APPLICATION_CREDENTIALS": str(self.folder / "gcp.json"),
            "LOCKSTEP_LAMBDA_ENDPOINT": url, "LAMBDA_API_KEY": LAMBDA_KEY,
            "LOCKSTEP_RUNPOD_ENDPOINT": url, "RUNPOD_API_KEY": RUNPOD_KEY,
        }

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")

    def rsa(self):
        path = self.folder / "gcp.pem"
        if not path.exists():
            old = os.umask(0o077)
            try:
                subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out",
                                str(path)], check=True, capture_output=True, timeout=60)
            finally:
                os.umask(old)
        return path.read_text(encoding="utf-8")


def modulus(path):
    shown = subprocess.run(["openssl", "rsa", "-in", str(path), "-noout", "-modulus"], check=True, capture_output=True,
                           text=True, timeout=60)
    return int(shown.stdout.strip().partition("=")[2], 16)


def unbase64url(text):
    if set(text) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") or len(text) % 4 == 1:
        raise ValueError("not base64url without padding")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def rs256_holds(modulus_, signed, signature):
    """Checks RSASSA-PKCS1-v1_5 with SHA-256 and exponent 65537. Compares the padding, and does not parse it."""
    size = (modulus_.bit_length() + 7) // 8
    if len(signature) != size:
        return False
    opened = pow(int.from_bytes(signature, "big"), 65537, modulus_).to_bytes(size, "big")
    digest = SHA256_INFO + hashlib.sha256(signed).digest()
    return opened == b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
