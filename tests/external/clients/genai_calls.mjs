// Every call of @google/genai that weighlock has to do with, against a base URL: `genai_calls.mjs URL SHOT PACKAGE`.
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [url, shot, home] = process.argv.slice(2)
const { GoogleGenAI } = await import(pathToFileURL(`${home}/dist/node/index.mjs`).href)
const version = JSON.parse(readFileSync(`${home}/package.json`)).version
const httpOptions = { baseUrl: url }
const client = new GoogleGenAI({ apiKey: 'k', httpOptions })
const model = 'gemini-3.5-flash'
const data = readFileSync(shot).toString('base64')
const contents = [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }, { text: 'hi' }] }]
const told = { version }
told.generate = (await client.models.generateContent({ model, contents })).usageMetadata.promptTokenCount
const pieces = []
for await (const piece of await client.models.generateContentStream({ model, contents })) pieces.push(piece)
told.stream = [pieces.length, pieces.at(-1).usageMetadata.promptTokenCount]
told.count = (await client.models.countTokens({ model, contents })).totalTokens
const config = { name: 'files/mine', mimeType: 'image/png' }
const uploaded = await client.files.upload({ file: shot, config })
told.upload = [uploaded.name, uploaded.state]
const reference = { fileData: { fileUri: uploaded.uri, mimeType: 'image/png' } }
const used = await client.models.generateContent({ model, contents: [{ role: 'user', parts: [reference] }] })
told.use = used.usageMetadata.promptTokenCount
told.get = Number((await client.files.get({ name: 'files/mine' })).sizeBytes)
told.list = []
for await (const file of await client.files.list()) told.list.push(file.name)
await client.files.delete({ name: 'files/mine' })
try {
  await client.files.get({ name: 'files/mine' })
} catch (error) {
  told.gone = [error.status, JSON.parse(error.message).error.status]
}
console.log(JSON.stringify(told))
