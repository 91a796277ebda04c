// @google/genai through all that weighlock's service does for it: `service_genai.mjs URL KEY EMULATOR FOLDER PACKAGE`.
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [url, apiKey, emulator, folder, home] = process.argv.slice(2)
const { GoogleGenAI } = await import(pathToFileURL(`${home}/dist/node/index.mjs`).href)
const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } })
const model = 'gemini-3.5-flash'
const blob = (name, mimeType) => ({ mimeType, data: readFileSync(`${folder}/${name}`).toString('base64') })
const asked = (...parts) => ({ role: 'user', parts })
const inline = (name, mimeType) => ({ inlineData: blob(name, mimeType) })
const shot = [asked(inline('shot.png', 'image/png'), { text: 'Describe it.' })]
const others = [inline('tone.wav', 'audio/wav'), inline('clip.mp4', 'video/mp4'), inline('page.pdf', 'application/pdf')]
const everything = [asked(inline('shot.png', 'image/png'), ...others, { text: 'Describe it.' })]

// A tool's sound, and a turn after it.
async function tool() {
  const config = { tools: [{ functionDeclarations: [{ name: 'listen', description: 'Records sound.' }] }] }
  const contents = [asked({ text: 'Listen.' })]
  const calls = await client.models.generateContent({ model, contents, config })
  const { name, id } = calls.functionCalls[0]
  const parts = [inline('tone.wav', 'audio/wav')]
  const functionResponse = { name, id, response: { heard: 'a tone' }, parts }
  contents.push(calls.candidates[0].content, asked({ functionResponse }))
  const heard = await client.models.generateContent({ model, contents, config })
  contents.push(heard.candidates[0].content, asked({ text: 'And now?' }))
  return [heard.text, (await client.models.generateContent({ model, contents, config })).text]
}

// A file that is used at once, and three days later.
async function upload() {
  const uploaded = await client.files.upload({ file: `${folder}/shot.png` })
  const fileData = { fileUri: uploaded.uri, mimeType: uploaded.mimeType }
  const contents = [asked({ fileData }, { text: 'Describe it.' })]
  const used = (await client.models.generateContent({ model, contents })).text
  const known = []
  for await (const file of await client.files.list()) known.push(file.name === uploaded.name)
  await fetch(`${emulator}/emulator/clock`, { method: 'POST', body: JSON.stringify({ advance_s: 3 * 86400 }) })
  const expired = (await client.models.generateContent({ model, contents })).text
  return { upload: uploaded.state, known, used, expired }
}

async function refused() {
  const contents = [asked(inline('long.wav', 'audio/wav'), { text: 'Write it down.' })]
  try {
    await client.models.generateContent({ model, contents })
  } catch (error) {
    const told = JSON.parse(error.message).error
    return [error.status, told.status, told.message]
  }
}

const told = { version: JSON.parse(readFileSync(`${home}/package.json`)).version }
const answer = await client.models.generateContent({ model, contents: everything })
told.call = answer.text
const billed = answer.sdkHttpResponse.headers['x-weighlock-billed']
told.receipt = billed.startsWith(`prompt=${answer.usageMetadata.promptTokenCount},`)
told.stream = []
for await (const piece of await client.models.generateContentStream({ model, contents: shot })) {
  told.stream.push(piece.text)
}
told.count = (await client.models.countTokens({ model, contents: shot })).totalTokens
Object.assign(told, { tool: await tool() }, await upload(), { refused: await refused() })
console.log(JSON.stringify(told))
