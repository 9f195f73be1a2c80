// Runs calls of the vendors' own clients against the fake clouds. Standard input: JSON lines {"service", "call",
// "input", "region"}; for each, one JSON line on standard output: {"ok": answer} or {"error": {name, message, status}}.
// Services: ec2, sts, ssm, pricing, service-quotas (call: the command's name, "RunInstances"); compute (call:
// "InstancesClient.insert"); auth ("token": what google-auth-library buys with the key file).
'use strict';
const readline = require('readline');

const url = new URL(process.env.FAKE_CLOUD_URL);
const keyFile = process.env.GOOGLE_APPLICATION_CREDENTIALS;
const clients = new Map();

function once(name, make) {
  if (!clients.has(name)) clients.set(name, make());
  return clients.get(name);
}

async function aws({service, call, input, region}) {
  const sdk = require(`@aws-sdk/client-${service}`);
  const names = {ec2: 'EC2Client', sts: 'STSClient', ssm: 'SSMClient', pricing: 'PricingClient',
                 'service-quotas': 'ServiceQuotasClient'};
  const credentials = {accessKeyId: process.env.FAKE_AWS_KEY, secretAccessKey: process.env.FAKE_AWS_SECRET};
  const client = once(`${service} ${region}`, () => new sdk[names[service]]({
    region, credentials, endpoint: url.origin, maxAttempts: 1}));
  if (input.StartTime) input.StartTime = new Date(input.StartTime);
  const {$metadata, ...answer} = await client.send(new sdk[`${call}Command`](input));
  return answer;
}

// The library asks Google's own endpoint whatever the key file says: the request goes to the fake, unchanged but for
// that.
async function googleClient(file, scopes) {
  const {GoogleAuth} = require('google-auth-library');
  const {Gaxios} = require('gaxios');
  const client = await new GoogleAuth({keyFile: file, scopes}).getClient();
  const transporter = new Gaxios();
  const request = transporter.request.bind(transporter);
  transporter.request = options => request({
    ...options, retry: false, url: String(options.url).replace('https://oauth2.googleapis.com', url.origin)});
  client.transporter = transporter;
  return client;
}

async function auth({input}) {
  const client = await googleClient(input.keyFile || keyFile, input.scopes);
  const {token} = await client.getAccessToken();
  return {token, kind: client.constructor.name};
}

async function compute({call, input}) {
  const sdk = require('@google-cloud/compute');
  const [name, method] = call.split('.');
  const authClient = await once('auth', () => googleClient(keyFile, ['https://www.googleapis.com/auth/cloud-platform']));
  const client = once(name, () => new sdk[name]({
    authClient, apiEndpoint: url.hostname, port: Number(url.port), protocol: 'http', fallback: true}));
  if (method.endsWith('Async')) {
    const rows = [];
    for await (const row of client[method](input, {timeout: 20000, maxRetries: 0})) rows.push(row);
    return rows;
  }
  const [answer] = await client[method](input, {timeout: 20000, maxRetries: 0});
  return answer.latestResponse !== undefined ? answer.latestResponse : answer;
}

function plain(_, value) {
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') :
         typeof value === 'bigint' ? String(value) : value;
}

async function main() {
  for await (const line of readline.createInterface({input: process.stdin})) {
    const call = JSON.parse(line);
    let said;
    try {
      const run = call.service === 'compute' ? compute : call.service === 'auth' ? auth : aws;
      said = {ok: await run(call)};
    } catch (error) {
      said = {error: {name: error.name, code: error.Code || error.code, message: error.message,
                      status: error.$metadata && error.$metadata.httpStatusCode}};
    }
    process.stdout.write(JSON.stringify(said, plain) + '\n');
  }
}

main();
